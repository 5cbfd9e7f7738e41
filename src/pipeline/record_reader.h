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

// Cuts a stream into records: lines or, where quotes count, what ends with the first line end that
// an even number of quotes precedes. That rule alone says where records begin, whatever is in them.
// Used by one thread at a time.
class RecordReader {
 public:
  enum class Quotes { kIgnored, kCount };

  // Behind every record at least this many bytes may be read, whatever they are.
  static constexpr size_t kPadding = 64;

  struct Record {
    std::string_view text;    // without its line end; lives until the next call
    uint64_t offset = 0;      // of its first byte in the stream
    bool too_long = false;    // `text` is only its beginning
    bool open_quote = false;  // the stream ended within quotes
  };

  // `offset` is where the stream stands, `max_bytes` the longest record.
  RecordReader(std::unique_ptr<ByteStream> stream, uint64_t offset, size_t max_bytes,
               Quotes quotes);

  Result<std::optional<Record>> Next();

  // Where the next record begins.
  uint64_t offset() const { return offset_; }

 private:
  bool FindEnd();
  Result<bool> Fill();
  Record Cut(size_t length);
  Result<Record> CutTooLong();

  std::unique_ptr<ByteStream> stream_;
  const size_t max_bytes_;
  const bool quotes_count_;
  std::vector<char> buffer_;
  size_t begin_ = 0;            // of the next record in the buffer
  size_t end_ = 0;              // of what was read
  size_t searched_ = 0;         // bytes of the next record without an end of it
  size_t searched_quotes_ = 0;  // in them
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
