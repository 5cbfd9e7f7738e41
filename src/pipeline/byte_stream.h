#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

enum class Compression { kNone, kGzip, kZstd };

// By the end of the name: .gz and .zst are compressed.
Compression CompressionOf(std::string_view path);

// The bytes of one file, unpacked, from first to last. Used by one thread at a time.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Up to `size` bytes; 0: the end. Errors name the file and, for what is compressed, the byte in
  // it: kCorrupt if the packed data is damaged or ends too early.
  virtual Result<size_t> Read(char* to, size_t size) = 0;
};

// Opens a file from a byte of the unpacked content on. What is compressed has to be unpacked up to
// there. kNotFound, kPermission: there is no such file, or it may not be read.
Result<std::unique_ptr<ByteStream>> OpenByteStream(const std::string& path, Compression compression,
                                                   uint64_t offset);

}  // namespace muster
