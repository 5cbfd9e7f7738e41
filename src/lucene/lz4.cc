#include "lucene/lz4.h"

#include <lz4.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace muster::lucene {
namespace {

// Short runs are copied as this many bytes, if there is room.
constexpr size_t kStride = 16;

Error Damaged(std::string_view why) {
  return Error{Code::kCorrupt, "damaged LZ4 data: " + std::string(why)};
}

class Lz4Decoder {
 public:
  Lz4Decoder(std::string_view in, std::string_view dictionary, char* to, size_t size)
      : from_(in.data()),
        in_end_(in.data() + in.size()),
        dictionary_(dictionary),
        start_(to),
        to_(to),
        end_(to + size) {}

  // The error; null on success.
  const char* Decode() {
    while (to_ < end_) {
      if (from_ == in_end_) return "it ends too early";
      const auto token = static_cast<uint8_t>(*from_++);
      if (const char* why = Literals(token >> 4)) return why;
      if (to_ == end_) break;
      if (const char* why = Match(token & 15)) return why;
    }
    return nullptr;
  }

  const char* from() const { return from_; }

 private:
  size_t InLeft() const { return static_cast<size_t>(in_end_ - from_); }
  size_t OutLeft() const { return static_cast<size_t>(end_ - to_); }

  // A length of 15 continues in the next bytes, until one is not 255.
  bool Extend(size_t& length) {
    if (length < 15) return true;
    uint8_t more = 255;
    while (more == 255) {
      if (from_ == in_end_) return false;
      more = static_cast<uint8_t>(*from_++);
      length += more;
    }
    return true;
  }

  const char* Literals(size_t length) {
    if (length < 15 && InLeft() >= kStride && OutLeft() >= kStride) {
      std::memcpy(to_, from_, kStride);
    } else {
      if (!Extend(length)) return "it ends within a length";
      if (length > InLeft()) return "literals beyond its end";
      if (length > OutLeft()) return "more literals than it may hold";
      std::memcpy(to_, from_, length);
    }
    to_ += length;
    from_ += length;
    return nullptr;
  }

  const char* Match(size_t length) {
    if (InLeft() < 2) return "it ends within a match";
    const size_t distance = static_cast<uint8_t>(from_[0]) | static_cast<uint8_t>(from_[1]) << 8;
    from_ += 2;
    if (!Extend(length)) return "it ends within a length";
    length += 4;
    const auto before = static_cast<size_t>(to_ - start_);
    if (distance == 0 || distance > before + dictionary_.size()) return "a match before its start";
    if (length > OutLeft()) return "a match longer than it may hold";
    if (distance > before) {
      const size_t back = distance - before;
      const size_t part = std::min(back, length);
      std::memcpy(to_, dictionary_.data() + dictionary_.size() - back, part);
      to_ += part;
      length -= part;
    }
    Repeat(distance, length);
    to_ += length;
    return nullptr;
  }

  // Copies `length` bytes from `distance` back. Overlapping bytes repeat.
  void Repeat(size_t distance, size_t length) {
    const char* const from = to_ - distance;
    if (distance >= kStride && OutLeft() >= length + kStride) {
      for (size_t done = 0; done < length; done += kStride) {
        std::memcpy(to_ + done, from + done, kStride);
      }
    } else if (distance >= length) {
      std::memcpy(to_, from, length);
    } else {
      for (size_t i = 0; i < length; ++i) to_[i] = from[i];
    }
  }

  const char* from_;
  const char* const in_end_;
  const std::string_view dictionary_;
  char* const start_;
  char* to_;
  char* const end_;
};

}  // namespace

Result<size_t> DecodeLz4(std::string_view in, std::string_view dictionary, char* to, size_t size) {
  Lz4Decoder decoder(in, dictionary, to, size);
  if (const char* why = decoder.Decode()) return Damaged(why);
  return static_cast<size_t>(decoder.from() - in.data());
}

Status DecodeLz4Block(std::string_view in, std::string_view dictionary, char* to, size_t size) {
  if (in.size() > LZ4_MAX_INPUT_SIZE || size > LZ4_MAX_INPUT_SIZE) {
    return Damaged("it is longer than a block can be");
  }
  const int got = LZ4_decompress_safe_usingDict(
      in.data(), to, static_cast<int>(in.size()), static_cast<int>(size + kLz4Spare),
      dictionary.data(), static_cast<int>(dictionary.size()));
  if (got != static_cast<int>(size)) return Damaged("it does not unpack to what it should");
  return {};
}

}  // namespace muster::lucene
