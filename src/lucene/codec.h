#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lucene/byte_reader.h"
#include "muster/result.h"

namespace muster::lucene {

// The header of a Lucene file.
struct CodecHeader {
  std::string codec;
  uint32_t version = 0;
  std::string id;      // of the segment or commit; empty before Lucene 5
  std::string suffix;  // of an index header
};

// Reads a plain header: magic, name and version. A wrong magic is latched in `reader`.
CodecHeader ReadHeader(ByteReader& reader);

// Reads the rest of an index header: id and suffix.
void ReadIndexHeaderRest(ByteReader& reader, CodecHeader& header);

// The byte order of fixed-width numbers in a file, by codec name.
ByteOrder OrderOf(std::string_view codec);

constexpr size_t kFooterBytes = 16;

// Continues the CRC-32 of zlib over more bytes; starts with 0.
uint32_t Crc32(uint32_t crc, std::string_view bytes);

// The CRC in a footer; kCorrupt if it is not one. `footer` has kFooterBytes.
Result<uint32_t> FooterCrc(std::string_view footer, std::string_view origin);

// The content of a whole file without its footer, after checking its CRC.
Result<std::string_view> CheckFooter(std::string_view file, std::string_view origin);

// A base-36 number with digits 0-9a-z, as in file names and checksums; none if it is not one.
std::optional<uint64_t> ParseBase36(std::string_view text);
std::string ToBase36(uint64_t number);

}  // namespace muster::lucene
