#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "pipeline/byte_stream.h"

namespace muster {

// How records of CSV end: at a line end that is not within quotes. A field is in quotes if it
// begins with one; a quote anywhere else means nothing here, and is for the parser to refuse.
struct CsvRecords {
  char delimiter = ',';
  // How many fields a record has; 0: it is not known.
  size_t columns = 0;
  // The first record of the stream may be anything.
  bool has_header = false;
  // A record of several lines may look as if each of them was one.
  bool trusts_quotes = false;
};

// Cuts a stream into records: lines or, with CsvRecords, what those say.
//
// A quote that was never meant to open a field would swallow the lines up to the next one. So what
// begins with a line that opens a quote is that line alone (`open_quote`), and the lines behind it
// are records again, if text follows on the closing quote, if no quote closes it, or if every line
// of it has as many fields as a record: two lines may by chance, more than a few will not.
//
// Where a record ends depends on nothing before it. Used by one thread at a time.
class RecordReader {
 public:
  // Behind every record at least this many bytes may be read, whatever they are.
  static constexpr size_t kPadding = 64;

  struct Record {
    std::string_view text;    // without its line end; lives until the next call
    uint64_t offset = 0;      // of its first byte in the stream
    bool too_long = false;    // `text` is only its beginning
    bool open_quote = false;  // a quote is not closed, or not where it may be
    bool runaway = false;     // too long, over several lines: an unknown number of rows
  };

  // `offset` is where the stream stands, `max_bytes` the longest record. Without `csv` every line
  // is a record.
  RecordReader(std::unique_ptr<ByteStream> stream, uint64_t offset, size_t max_bytes,
               std::optional<CsvRecords> csv = {});

  Result<std::optional<Record>> Next();

  // Where the next record begins.
  uint64_t offset() const { return offset_; }

 private:
  enum class At { kFieldStart, kPlain, kQuoted, kClosed };

  bool FindEnd();
  bool FindCsvEnd();
  bool Step(char c);
  bool LooksLikeRecords(std::string_view lines) const;
  Result<bool> Fill();
  Record Cut(size_t length);
  Record CutFirstLine();
  Result<Record> CutTooLong();

  std::unique_ptr<ByteStream> stream_;
  const size_t max_bytes_;
  const std::optional<CsvRecords> csv_;
  std::vector<char> buffer_;
  size_t begin_ = 0;     // of the next record in the buffer
  size_t end_ = 0;       // of what was read
  size_t searched_ = 0;  // bytes of the next record without an end of it
  At at_ = At::kFieldStart;
  size_t first_line_ = 0;   // bytes of the next record's first line, if it has several; else 0
  bool misplaced_ = false;  // text follows a quote that closes a field of several lines
  bool passing_ = false;    // over the rest of a record that is too long
  bool at_end_ = false;
  uint64_t offset_;
  std::string too_long_;  // the beginning of a record that was
};

// The first record of a file without the mark that some programs begin UTF-8 with.
inline std::string_view WithoutBom(std::string_view text) {
  constexpr std::string_view kBom = "\xEF\xBB\xBF";
  return text.starts_with(kBom) ? text.substr(kBom.size()) : text;
}

}  // namespace muster
