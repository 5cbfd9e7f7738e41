#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "pipeline/file/byte_stream.h"

namespace muster::pipeline {

// How CSV records end: at a line end outside quotes. A field is quoted if it starts with a quote; a
// quote anywhere else has no meaning here, and the parser rejects it.
struct CsvRecords {
  char delimiter = ',';
  // Fields per record; 0: unknown.
  size_t columns = 0;
  // Accept anything as the first record of the stream.
  bool has_header = false;
  // Multi-line records may consist of lines that each look like a record.
  bool trusts_quotes = false;
};

// Splits a stream into records: lines, or CSV records with CsvRecords.
//
// A stray quote at the start of a field would swallow the lines up to the next quote. So a line
// that opens a quote is returned alone (`open_quote`), and the lines after it are records again, if
// text follows the closing quote, if no quote closes it, or if every line has as many fields as a
// record: two lines may by chance, more than a few will not.
//
// Where a record ends does not depend on anything before it. Used by one thread at a time.
class RecordReader {
 public:
  // At least this many bytes after every record are readable.
  static constexpr size_t kPadding = 64;

  struct Record {
    std::string_view text;    // without its line end; valid until the next call
    uint64_t offset = 0;      // of its first byte in the stream
    bool too_long = false;    // `text` is only its beginning
    bool open_quote = false;  // a quote is unclosed, or closed in the wrong place
    bool runaway = false;     // too long and multi-line: any number of rows may be lost
  };

  // `offset` is the stream's current offset, `max_bytes` the longest record. Without `csv` every
  // line is a record.
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
  size_t searched_ = 0;  // bytes of the next record already searched for its end
  At at_ = At::kFieldStart;
  size_t first_line_ = 0;   // bytes of the next record's first line, if it has several; else 0
  bool misplaced_ = false;  // text follows the closing quote of a multi-line field
  bool passing_ = false;    // skipping the rest of a record that is too long
  bool at_end_ = false;
  uint64_t offset_;
  std::string too_long_;  // the beginning of such a record
};

// The first record of a file without a UTF-8 byte order mark.
inline std::string_view WithoutBom(std::string_view text) {
  constexpr std::string_view kBom = "\xEF\xBB\xBF";
  return text.starts_with(kBom) ? text.substr(kBom.size()) : text;
}

}  // namespace muster::pipeline
