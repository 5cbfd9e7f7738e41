#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster::lucene {

enum class ByteOrder { kBig, kLittle };

// Reads the bytes of one file, trusting none of them. The first read past the end, or the first
// Fail, is latched: from then on every read returns zero or nothing, and `status` says what was
// wrong, in which file and where. So a decoder reads straight on and checks once, but before it
// allocates or loops by a count it has read: `Count` bounds that.
//
// Owns neither the bytes nor the text of `origin`.
class ByteReader {
 public:
  // `origin` names the bytes in messages; `base` is their offset in it.
  ByteReader(std::string_view bytes, std::string_view origin, ByteOrder order = ByteOrder::kBig,
             uint64_t base = 0)
      : bytes_(bytes), origin_(origin), order_(order), base_(base) {}

  void set_order(ByteOrder order) { order_ = order; }
  ByteOrder order() const { return order_; }
  std::string_view origin() const { return origin_; }
  size_t offset() const { return offset_; }
  size_t left() const { return error_ ? 0 : bytes_.size() - offset_; }
  bool ok() const { return !error_; }
  Status status() const;

  // Latches a failure at the current offset, unless there already is one.
  void Fail(std::string_view why, Code code = Code::kCorrupt);
  void Expect(bool condition, std::string_view why) {
    if (!condition) Fail(why);
  }

  uint8_t U8() {
    if (!error_ && offset_ < bytes_.size()) return static_cast<uint8_t>(bytes_[offset_++]);
    Fail("it ends within a value of 1 byte");
    return 0;
  }
  uint16_t U16();
  uint32_t U32();
  uint64_t U64();
  int16_t I16() { return static_cast<int16_t>(U16()); }
  int32_t I32() { return static_cast<int32_t>(U32()); }
  int64_t I64() { return static_cast<int64_t>(U64()); }
  // Always big-endian, as headers and footers are.
  uint32_t BigU32();
  uint64_t BigU64();

  // Nearly all numbers have one byte, and they are read for every field of every document.
  uint32_t VInt() { return IsShort() ? U8() : LongVInt(); }
  uint64_t VLong() { return IsShort() ? U8() : Variable(9); }
  // A vint that counts things of at least `bytes_each`, so no more than fit in the rest.
  size_t Count(size_t bytes_each = 1);
  // The next bytes; empty on overrun.
  std::string_view Take(uint64_t length) {
    if (error_ || length > bytes_.size() - offset_) return Overrun(length);
    const std::string_view taken = bytes_.substr(offset_, length);
    offset_ += length;
    return taken;
  }
  std::string_view String() { return Take(VInt()); }
  void Skip(uint64_t length) { Take(length); }
  void SeekTo(uint64_t offset);

 private:
  bool IsShort() const {
    return offset_ < bytes_.size() && static_cast<uint8_t>(bytes_[offset_]) < 128;
  }
  std::string_view Overrun(uint64_t length);
  uint32_t LongVInt();
  uint64_t Fixed(size_t length, ByteOrder order);
  uint64_t Variable(int max_bytes);

  std::string_view bytes_;
  std::string_view origin_;
  ByteOrder order_;
  uint64_t base_;
  size_t offset_ = 0;
  std::optional<Error> error_;
};

// (n >> 1) ^ -(n & 1): how signed numbers are written as unsigned ones.
constexpr int64_t ZigZag(uint64_t n) {
  return static_cast<int64_t>(n >> 1) ^ -static_cast<int64_t>(n & 1);
}

}  // namespace muster::lucene
