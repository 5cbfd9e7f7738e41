#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster::pipeline {

enum class Compression { kNone, kGzip, kZstd };

// Based on the file name: .gz and .zst are compressed.
Compression CompressionOf(std::string_view path);

// The decompressed bytes of one file, front to back. Used by one thread at a time.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Reads up to `size` bytes; 0 at the end. Errors name the file and, for compressed files, the
  // offset. kCorrupt: the compressed data is damaged or truncated.
  virtual Result<size_t> Read(char* to, size_t size) = 0;
};

// Opens a file at an offset in its decompressed content. Compressed files are decompressed up to
// that point. kNotFound, kPermission: the file does not exist or cannot be read.
Result<std::unique_ptr<ByteStream>> OpenByteStream(const std::string& path, Compression compression,
                                                   uint64_t offset);

}  // namespace muster::pipeline
