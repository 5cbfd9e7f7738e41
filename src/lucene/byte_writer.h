#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lucene/byte_reader.h"
#include "lucene/codec.h"

namespace muster::lucene {

// Builds Lucene files by hand, for tests.
class ByteWriter {
 public:
  explicit ByteWriter(ByteOrder order = ByteOrder::kBig) : order_(order) {}

  const std::string& bytes() const { return bytes_; }

  ByteWriter& U8(uint64_t value) { return Fixed(value, 1, order_); }
  ByteWriter& U16(uint64_t value) { return Fixed(value, 2, order_); }
  ByteWriter& U32(uint64_t value) { return Fixed(value, 4, order_); }
  ByteWriter& U64(uint64_t value) { return Fixed(value, 8, order_); }
  ByteWriter& VInt(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  ByteWriter& Raw(std::string_view raw) {
    bytes_ += raw;
    return *this;
  }
  ByteWriter& String(std::string_view text) { return VInt(text.size()).Raw(text); }
  ByteWriter& Header(std::string_view codec, uint32_t version) {
    Fixed(0x3FD76C17, 4, ByteOrder::kBig).String(codec);
    return Fixed(version, 4, ByteOrder::kBig);
  }
  // `id` has 16 bytes.
  ByteWriter& IndexHeader(std::string_view codec, uint32_t version, std::string_view id,
                          std::string_view suffix = "") {
    return Header(codec, version).Raw(id).U8(suffix.size()).Raw(suffix);
  }

 private:
  ByteWriter& Fixed(uint64_t value, int length, ByteOrder order) {
    for (int i = 0; i < length; ++i) {
      const int byte = order == ByteOrder::kBig ? length - 1 - i : i;
      bytes_ += static_cast<char>(value >> (8 * byte));
    }
    return *this;
  }

  std::string bytes_;
  ByteOrder order_;
};

constexpr std::string_view kTestId = "0123456789abcdef";

// The content with a valid footer.
inline std::string Sealed(std::string_view content) {
  ByteWriter writer;
  writer.Raw(content).U32(~0x3FD76C17U).U32(0);
  const uint32_t crc = Crc32(0, writer.bytes());
  return writer.U64(crc).bytes();
}

// Whether `fails` holds for every proper prefix of the bytes.
inline bool EveryTruncation(std::string_view bytes,
                            const std::function<bool(std::string_view)>& fails) {
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A separate copy, so that a read past the end is past an allocation.
    const std::string prefix(bytes.substr(0, length));
    if (!fails(prefix)) return false;
  }
  return true;
}

}  // namespace muster::lucene
