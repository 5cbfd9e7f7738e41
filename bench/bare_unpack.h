#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lucene/shard_directory.h"

namespace muster::bench {

// The packed blocks of a shard's stored fields in memory, found once, to be unpacked over and over
// with nothing else done. Only of LZ4 with dictionaries, as Lucene 9 and later write it.
class BareUnpack {
 public:
  explicit BareUnpack(const lucene::ShardDirectory& directory);

  uint64_t unpacked_bytes() const { return unpacked_bytes_; }

  // All blocks, with liblz4.
  void RunLiblz4();
  // All blocks, with our own decoder.
  void RunOurs();

 private:
  struct Block {
    size_t file;
    size_t start;  // of the packed bytes, in its file
    size_t end;
    size_t size;  // unpacked
  };

  void AddFile(std::string fdt);
  std::string_view PackedBytesOf(const Block& block) const;

  std::vector<std::string> files_;
  std::vector<Block> blocks_;
  uint64_t unpacked_bytes_ = 0;
  std::string buffer_;
};

}  // namespace muster::bench
