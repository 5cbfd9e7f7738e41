#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lucene/packed_ints.h"
#include "lucene/shard_directory.h"

namespace muster::lucene {

// A part of a file, read in pieces as needed: the last piece is kept, so that neighbours cost no
// call. One thread at a time; refers to the file's directory.
class FileWindow {
 public:
  // `piece`: how many bytes to read at least. kCorrupt: the part is not within the file.
  static Result<FileWindow> Open(const ShardFileView& file, uint64_t offset, uint64_t length,
                                 uint64_t piece);

  const std::string& origin() const { return file_.origin(); }
  uint64_t length() const { return length_; }

  // These bytes of the part, until the next call. kCorrupt: they are beyond its end.
  Result<std::string_view> At(uint64_t offset, uint64_t length);

  // The number at `index` among packed ones that start at `offset` of the part; 0 bits: 0.
  Result<uint64_t> PackedNumber(uint64_t offset, uint32_t bits, uint64_t index, ByteOrder order);
  // The number at `index` of those whose region is this part.
  Result<uint64_t> MonotonicNumber(const DirectMonotonic& numbers, uint64_t index, ByteOrder order);

 private:
  FileWindow(ShardFileView file, uint64_t offset, uint64_t length, uint64_t piece)
      : file_(std::move(file)), offset_(offset), length_(length), piece_(piece) {}
  Error BeyondEnd() const;

  ShardFileView file_;
  uint64_t offset_;
  uint64_t length_;
  uint64_t piece_;
  uint64_t start_ = 0;  // of what is in memory
  std::string bytes_;
};

}  // namespace muster::lucene
