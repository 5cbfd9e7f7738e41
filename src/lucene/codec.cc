#include "lucene/codec.h"

#include <libdeflate.h>

#include <algorithm>
#include <charconv>

namespace muster::lucene {
namespace {

constexpr uint32_t kMagic = 0x3FD76C17;
constexpr size_t kIdBytes = 16;

}  // namespace

CodecHeader ReadHeader(ByteReader& reader) {
  CodecHeader header;
  if (reader.BigU32() != kMagic) reader.Fail("no Lucene header where one should be");
  header.codec = reader.String();
  header.version = reader.BigU32();
  return header;
}

void ReadIndexHeaderRest(ByteReader& reader, CodecHeader& header) {
  header.id = reader.Take(kIdBytes);
  header.suffix = reader.Take(reader.U8());
}

ByteOrder OrderOf(std::string_view codec) {
  constexpr std::string_view kLucene = "Lucene";
  if (!codec.starts_with(kLucene) || codec.size() == kLucene.size()) return ByteOrder::kLittle;
  const char first = codec[kLucene.size()];
  return first >= '4' && first <= '8' ? ByteOrder::kBig : ByteOrder::kLittle;
}

uint32_t Crc32(uint32_t crc, std::string_view bytes) {
  // libdeflate treats a null pointer specially.
  if (bytes.empty()) return crc;
  // Several times as fast as zlib's, which would take a third of the time LZ4 does.
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

Result<uint32_t> FooterCrc(std::string_view footer, std::string_view origin) {
  ByteReader reader(footer, origin);
  const bool sound = reader.BigU32() == ~kMagic && reader.BigU32() == 0;
  const uint64_t crc = reader.BigU64();
  if (!sound || crc > UINT32_MAX || !reader.ok()) {
    return Error{Code::kCorrupt, std::string(origin) + ": no Lucene footer at its end"};
  }
  return static_cast<uint32_t>(crc);
}

Result<std::string_view> CheckFooter(std::string_view file, std::string_view origin) {
  if (file.size() < kFooterBytes) {
    return Error{Code::kCorrupt, std::string(origin) + ": too short for a Lucene footer"};
  }
  const size_t end = file.size() - kFooterBytes;
  MUSTER_ASSIGN(const uint32_t expected, FooterCrc(file.substr(end), origin));
  if (Crc32(0, file.substr(0, file.size() - 8)) != expected) {
    return Error{Code::kCorrupt, std::string(origin) + ": its CRC-32 is wrong",
                 "the file was damaged after it was written: take another snapshot"};
  }
  return file.substr(0, end);
}

std::optional<uint64_t> ParseBase36(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 36);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string ToBase36(uint64_t number) {
  std::string text;
  do {
    text += "0123456789abcdefghijklmnopqrstuvwxyz"[number % 36];
    number /= 36;
  } while (number > 0);
  std::reverse(text.begin(), text.end());
  return text;
}

}  // namespace muster::lucene
