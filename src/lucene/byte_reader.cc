#include "lucene/byte_reader.h"

namespace muster::lucene {

Status ByteReader::status() const {
  if (error_) return *error_;
  return {};
}

void ByteReader::Fail(std::string_view why, Code code) {
  if (error_) return;
  error_ = Error{code, std::string(origin_) + ": at byte " + std::to_string(base_ + offset_) +
                           ": " + std::string(why)};
}

std::string_view ByteReader::Overrun(uint64_t length) {
  Fail("it ends within a value of " + std::to_string(length) + " bytes");
  return {};
}

void ByteReader::SeekTo(uint64_t offset) {
  if (error_) return;
  if (offset > bytes_.size()) {
    Fail("it points beyond its end, to byte " + std::to_string(base_ + offset));
    return;
  }
  offset_ = offset;
}

uint64_t ByteReader::Fixed(size_t length, ByteOrder order) {
  const std::string_view bytes = Take(length);
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[order == ByteOrder::kBig ? i : length - 1 - i]);
    value = value << 8 | byte;
  }
  return value;
}

uint16_t ByteReader::U16() { return static_cast<uint16_t>(Fixed(2, order_)); }
uint32_t ByteReader::U32() { return static_cast<uint32_t>(Fixed(4, order_)); }
uint64_t ByteReader::U64() { return Fixed(8, order_); }
uint32_t ByteReader::BigU32() { return static_cast<uint32_t>(Fixed(4, ByteOrder::kBig)); }
uint64_t ByteReader::BigU64() { return Fixed(8, ByteOrder::kBig); }

uint64_t ByteReader::Variable(int max_bytes) {
  uint64_t value = 0;
  for (int i = 0; i < max_bytes; ++i) {
    const uint8_t byte = U8();
    value |= static_cast<uint64_t>(byte & 127) << (7 * i);
    if (byte < 128) return value;
  }
  Fail("a number has too many bytes");
  return 0;
}

uint32_t ByteReader::LongVInt() {
  const uint64_t value = Variable(5);
  if (value > UINT32_MAX) {
    Fail("a number is beyond 32 bits");
    return 0;
  }
  return static_cast<uint32_t>(value);
}

size_t ByteReader::Count(size_t bytes_each) {
  const size_t count = VInt();
  if (count <= left() / bytes_each) return count;
  Fail("it counts " + std::to_string(count) + " entries, more than it has room for");
  return 0;
}

}  // namespace muster::lucene
