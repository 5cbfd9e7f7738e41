#include "base/gzip.h"

#include <zlib.h>

#include <array>
#include <memory>

namespace muster {

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
    // In pieces, since zlib counts in 32 bits.
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
    // Without progress there is Z_BUF_ERROR: the input has ended early.
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
