#include "core/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>

namespace muster {

std::string Gzip(std::string_view text) {
  static constexpr int kGzip = MAX_WBITS + 16;
  static constexpr int kMemoryLevel = 9;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::bad_alloc();
  }
  const std::unique_ptr<z_stream, decltype(&deflateEnd)> end(&stream, &deflateEnd);
  std::string packed;
  packed.resize(deflateBound(&stream, text.size()));
  size_t used = 0;
  do {
    // In chunks: zlib's counters are 32-bit.
    const std::string_view next = text.substr(0, size_t{1} << 30);
    text.remove_prefix(next.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
    stream.avail_in = static_cast<uInt>(next.size());
    do {
      if (used == packed.size()) packed.resize(packed.size() + 64 * 1024);
      const size_t room = std::min(packed.size() - used, size_t{1} << 30);
      stream.next_out = reinterpret_cast<Bytef*>(packed.data() + used);
      stream.avail_out = static_cast<uInt>(room);
      deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
      used += room - stream.avail_out;
    } while (stream.avail_out == 0);
  } while (!text.empty());
  packed.resize(used);
  return packed;
}

Result<std::string> Gunzip(std::string_view packed, size_t max_bytes) {
  static constexpr int kGzipOnly = MAX_WBITS + 16;
  z_stream stream{};
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) {
    return Error{Code::kUnavailable, "out of memory for unpacking gzip"};
  }
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, &inflateEnd);
  std::string unpacked;
  std::array<char, 64 * 1024> piece;
  int state = Z_OK;
  do {
    // In chunks: zlib's counters are 32-bit.
    if (stream.avail_in == 0) {
      const std::string_view next = packed.substr(0, size_t{1} << 30);
      packed.remove_prefix(next.size());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
      stream.avail_in = static_cast<uInt>(next.size());
    }
    if (state == Z_STREAM_END) inflateReset(&stream);  // another member follows
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    // No progress means Z_BUF_ERROR: truncated input.
    if (state != Z_OK && state != Z_STREAM_END) {
      return Error{Code::kCorrupt, "damaged gzip data"};
    }
    unpacked.append(piece.data(), piece.size() - stream.avail_out);
    if (unpacked.size() > max_bytes) {
      return Error{Code::kInvalid, "unpacks to more than " + std::to_string(max_bytes) + " bytes"};
    }
  } while (state != Z_STREAM_END || stream.avail_in > 0 || !packed.empty());
  return unpacked;
}

}  // namespace muster
