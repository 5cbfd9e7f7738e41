#include "pipeline/record_reader.h"

#include <algorithm>
#include <cstring>

namespace muster {
namespace {

constexpr size_t kFirstBufferBytes = size_t{1} << 20;
constexpr size_t kKeptOfTooLong = size_t{64} << 10;

}  // namespace

RecordReader::RecordReader(std::unique_ptr<ByteStream> stream, uint64_t offset, size_t max_bytes,
                           Quotes quotes)
    : stream_(std::move(stream)),
      max_bytes_(max_bytes),
      quotes_count_(quotes == Quotes::kCount),
      buffer_(kFirstBufferBytes + kPadding),
      offset_(offset) {}

Result<std::optional<RecordReader::Record>> RecordReader::Next() {
  for (;;) {
    const bool found = FindEnd();
    if (searched_ > max_bytes_) return CutTooLong();
    if (found) {
      const Record record = Cut(searched_);
      begin_ += 1;  // the line end
      offset_ += 1;
      return record;
    }
    MUSTER_ASSIGN(const bool more, Fill());
    if (more) continue;
    if (searched_ == 0) return std::nullopt;
    const bool open_quote = searched_quotes_ % 2 == 1;
    Record record = Cut(searched_);
    record.open_quote = open_quote;
    return record;
  }
}

// Whether the record's line end is in the buffer; `searched_` bytes come before it.
bool RecordReader::FindEnd() {
  for (;;) {
    const char* const from = buffer_.data() + begin_ + searched_;
    const auto size = static_cast<size_t>(buffer_.data() + end_ - from);
    const void* const found = size == 0 ? nullptr : std::memchr(from, '\n', size);
    const size_t length =
        found == nullptr ? size : static_cast<size_t>(static_cast<const char*>(found) - from);
    if (quotes_count_) {
      searched_quotes_ += static_cast<size_t>(std::count(from, from + length, '"'));
    }
    searched_ += length;
    if (found == nullptr) return false;
    if (searched_quotes_ % 2 == 0) return true;
    ++searched_;  // a line end within quotes
  }
}

RecordReader::Record RecordReader::Cut(size_t length) {
  Record record{.text = {buffer_.data() + begin_, length}, .offset = offset_};
  if (record.text.ends_with('\r')) record.text.remove_suffix(1);
  begin_ += length;
  offset_ += length;
  searched_ = 0;
  searched_quotes_ = 0;
  return record;
}

// Reads on to the end of the record without keeping what is beyond its beginning.
Result<RecordReader::Record> RecordReader::CutTooLong() {
  Record record{.text = {}, .offset = offset_, .too_long = true};
  too_long_.assign(buffer_.data() + begin_, std::min(searched_, kKeptOfTooLong));
  bool more = true;
  while (more) {
    begin_ += searched_;
    offset_ += searched_;
    searched_ = 0;
    if (FindEnd()) break;
    if (searched_ > 0) continue;
    MUSTER_ASSIGN(more, Fill());
  }
  record.open_quote = searched_quotes_ % 2 == 1;
  Cut(searched_);
  if (more) {
    ++begin_;
    ++offset_;
  }
  record.text = too_long_;
  return record;
}

// Makes room and reads more behind what is there. False: there is no more.
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

}  // namespace muster
