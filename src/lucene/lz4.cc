#include "lucene/lz4.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace muster::lucene {
namespace {

Error Damaged(std::string_view why) {
  return Error{Code::kCorrupt, "damaged LZ4 data: " + std::string(why)};
}

}  // namespace

Result<size_t> DecodeLz4(std::string_view in, std::string_view dictionary, char* to, size_t size) {
  char* const start = to;
  char* const end = to + size;
  const char* from = in.data();
  const char* const in_end = from + in.size();

  // A length of 15 goes on in the next bytes, until one is not 255.
  const auto extend = [&](size_t& length) {
    if (length < 15) return true;
    uint8_t more = 255;
    while (more == 255) {
      if (from == in_end) return false;
      more = static_cast<uint8_t>(*from++);
      length += more;
    }
    return true;
  };

  while (to < end) {
    if (from == in_end) return Damaged("it ends too early");
    const auto token = static_cast<uint8_t>(*from++);
    size_t literals = token >> 4;
    if (!extend(literals)) return Damaged("it ends within a length");
    if (literals > static_cast<size_t>(in_end - from)) return Damaged("literals beyond its end");
    if (literals > static_cast<size_t>(end - to)) return Damaged("more literals than it may hold");
    std::memcpy(to, from, literals);
    to += literals;
    from += literals;
    if (to == end) break;

    if (in_end - from < 2) return Damaged("it ends within a match");
    const size_t distance = static_cast<uint8_t>(from[0]) | static_cast<uint8_t>(from[1]) << 8;
    from += 2;
    size_t length = token & 15;
    if (!extend(length)) return Damaged("it ends within a length");
    length += 4;
    const auto before = static_cast<size_t>(to - start);
    if (distance == 0 || distance > before + dictionary.size()) {
      return Damaged("a match before its start");
    }
    if (length > static_cast<size_t>(end - to)) return Damaged("a match longer than it may hold");
    if (distance > before) {
      const size_t back = distance - before;
      const size_t part = std::min(back, length);
      std::memcpy(to, dictionary.data() + dictionary.size() - back, part);
      to += part;
      length -= part;
    }
    if (distance >= length) {
      std::memcpy(to, to - distance, length);
    } else {
      // They overlap: bytes that were just copied are copied again.
      for (size_t i = 0; i < length; ++i) to[i] = to[i - distance];
    }
    to += length;
  }
  return static_cast<size_t>(from - in.data());
}

}  // namespace muster::lucene
