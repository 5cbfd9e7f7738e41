#include "pipeline/file/record_reader.h"

#include <algorithm>
#include <cstring>

namespace muster::pipeline {
namespace {

constexpr size_t kFirstBufferBytes = size_t{1} << 20;
constexpr size_t kKeptOfTooLong = size_t{64} << 10;

}  // namespace

RecordReader::RecordReader(std::unique_ptr<ByteStream> stream, uint64_t offset, size_t max_bytes,
                           std::optional<CsvRecords> csv)
    : stream_(std::move(stream)),
      max_bytes_(max_bytes),
      csv_(csv),
      buffer_(kFirstBufferBytes + kPadding),
      offset_(offset) {}

Result<std::optional<RecordReader::Record>> RecordReader::Next() {
  for (;;) {
    const bool found = FindEnd();
    if (misplaced_) return CutFirstLine();
    if (searched_ > max_bytes_) return CutTooLong();
    if (found) {
      if (first_line_ > 0 && LooksLikeRecords({buffer_.data() + begin_, searched_}))
        return CutFirstLine();
      const Record record = Cut(searched_);
      begin_ += 1;  // the line end
      offset_ += 1;
      return record;
    }
    MUSTER_ASSIGN(const bool more, Fill());
    if (more) continue;
    if (searched_ == 0) return std::nullopt;
    const bool open_quote = at_ == At::kQuoted;
    if (open_quote && first_line_ > 0) return CutFirstLine();
    if (first_line_ > 0 && LooksLikeRecords({buffer_.data() + begin_, searched_}))
      return CutFirstLine();
    Record record = Cut(searched_);
    record.open_quote = open_quote;
    return record;
  }
}

// Whether the record's line end is in the buffer, after `searched_` bytes.
bool RecordReader::FindEnd() {
  const char* const from = buffer_.data() + begin_ + searched_;
  const auto size = static_cast<size_t>(buffer_.data() + end_ - from);
  if (csv_ && searched_ > 0) return FindCsvEnd();
  const void* const found = size == 0 ? nullptr : std::memchr(from, '\n', size);
  const size_t length =
      found == nullptr ? size : static_cast<size_t>(static_cast<const char*>(found) - from);
  // Most lines contain no quotes and end at the line end.
  if (csv_ && (found == nullptr || std::memchr(from, '"', length) != nullptr)) return FindCsvEnd();
  searched_ += length;
  return found != nullptr;
}

bool RecordReader::FindCsvEnd() {
  const char* const record = buffer_.data() + begin_;
  const size_t size = end_ - begin_;
  if (offset_ == 0 && searched_ == 0) searched_ = size - WithoutBom({record, size}).size();
  while (searched_ < size) {
    if (at_ == At::kQuoted || at_ == At::kPlain) {
      // Only these characters change the state.
      const char wanted = at_ == At::kQuoted ? '"' : csv_->delimiter;
      while (searched_ < size && record[searched_] != wanted && record[searched_] != '\n')
        ++searched_;
      if (searched_ == size) return false;
    }
    if (Step(record[searched_])) return true;
    if (misplaced_) return false;
    ++searched_;
  }
  return false;
}

// Consumes one character of CSV; true: it ends the record.
bool RecordReader::Step(char c) {
  if (c == '\n') {
    if (at_ != At::kQuoted) return true;
    if (first_line_ == 0) first_line_ = searched_;
    return false;
  }
  switch (at_) {
    case At::kFieldStart:
      at_ = c == '"' ? At::kQuoted : c == csv_->delimiter ? At::kFieldStart : At::kPlain;
      break;
    case At::kPlain:
      if (c == csv_->delimiter) at_ = At::kFieldStart;
      break;
    case At::kQuoted:
      if (c == '"') at_ = At::kClosed;
      break;
    case At::kClosed:
      if (c == '"') {
        at_ = At::kQuoted;
      } else if (c == csv_->delimiter) {
        at_ = At::kFieldStart;
      } else if (c != '\r') {
        misplaced_ = first_line_ > 0 && searched_ <= max_bytes_ && !passing_;
        at_ = At::kPlain;
      }
      break;
  }
  return false;
}

// Whether every line has as many fields as a record, and there are too many lines for that to be
// chance.
bool RecordReader::LooksLikeRecords(std::string_view lines) const {
  if (csv_->trusts_quotes || csv_->columns < 2) return false;
  if (csv_->has_header && offset_ == 0) return false;
  size_t count = 0;
  for (size_t begin = 0; begin <= lines.size(); ++count) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    const auto fields = 1 + static_cast<size_t>(std::count(
                                lines.begin() + static_cast<std::ptrdiff_t>(begin),
                                lines.begin() + static_cast<std::ptrdiff_t>(end), csv_->delimiter));
    if (fields != csv_->columns) return false;
    begin = end + 1;
  }
  // The fewer the columns, the likelier that plain text has as many.
  return count >= (csv_->columns < 5 ? 8 - csv_->columns : 3);
}

RecordReader::Record RecordReader::Cut(size_t length) {
  Record record{.text = {buffer_.data() + begin_, length}, .offset = offset_};
  if (record.text.ends_with('\r')) record.text.remove_suffix(1);
  begin_ += length;
  offset_ += length;
  searched_ = 0;
  at_ = At::kFieldStart;
  first_line_ = 0;
  misplaced_ = false;
  return record;
}

RecordReader::Record RecordReader::CutFirstLine() {
  Record record = Cut(first_line_);
  record.open_quote = true;
  begin_ += 1;
  offset_ += 1;
  return record;
}

// Reads to the end of the record, keeping only its beginning.
Result<RecordReader::Record> RecordReader::CutTooLong() {
  Record record{.text = {}, .offset = offset_, .too_long = true};
  record.runaway = first_line_ > 0 && first_line_ <= max_bytes_;
  passing_ = true;
  too_long_.assign(buffer_.data() + begin_, std::min(searched_, kKeptOfTooLong));
  bool more = true;
  for (;;) {
    const bool found = csv_ ? FindCsvEnd() : FindEnd();
    begin_ += searched_;
    offset_ += searched_;
    searched_ = 0;
    if (found) break;
    MUSTER_ASSIGN(more, Fill());
    if (!more) break;
  }
  passing_ = false;
  record.open_quote = at_ == At::kQuoted;
  Cut(0);
  if (more) {
    ++begin_;
    ++offset_;
  }
  record.text = too_long_;
  return record;
}

// Makes room and reads more. False: end of the stream.
Result<bool> RecordReader::Fill() {
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ + kPadding == buffer_.size()) buffer_.resize(2 * (buffer_.size() - kPadding) + kPadding);
  MUSTER_ASSIGN(const size_t got,
                stream_->Read(buffer_.data() + end_, buffer_.size() - kPadding - end_));
  end_ += got;
  at_end_ = got == 0;
  return got > 0;
}

}  // namespace muster::pipeline
