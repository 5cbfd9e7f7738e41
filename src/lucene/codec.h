#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lucene/byte_reader.h"
#include "muster/result.h"

namespace muster::lucene {

// What stands at the start of a Lucene file.
struct CodecHeader {
  std::string codec;
  uint32_t version = 0;
  std::string id;      // of the segment or commit; empty in files without (before Lucene 5)
  std::string suffix;  // of an index header
};

// Reads a plain header: magic, name and version. A wrong magic is latched in `reader`.
CodecHeader ReadHeader(ByteReader& reader);

// Adds what an index header has besides: id and suffix.
void ReadIndexHeaderRest(ByteReader& reader, CodecHeader& header);

// The order of fixed-width numbers in a file, by the name of its codec.
ByteOrder OrderOf(std::string_view codec);

constexpr size_t kFooterBytes = 16;

// Continues the CRC-32 of zlib over more bytes; starts with 0.
uint32_t Crc32(uint32_t crc, std::string_view bytes);

// The CRC that a footer holds, or kCorrupt when it is not one. `footer` has kFooterBytes.
Result<uint32_t> FooterCrc(std::string_view footer, std::string_view origin);

// The content of a whole file without its footer, after its CRC was found right.
Result<std::string_view> CheckFooter(std::string_view file, std::string_view origin);

// Number in base 36 with digits 0-9a-z, as in names of files and checksums; nothing if it is none.
std::optional<uint64_t> ParseBase36(std::string_view text);
std::string ToBase36(uint64_t number);

}  // namespace muster::lucene
