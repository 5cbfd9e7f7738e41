#include <cstring>

#include "muster/pipeline.h"

namespace muster::pipeline {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;

}  // namespace

char* Arena::Allocate(size_t size) {
  while (block_ < blocks_.size() && blocks_[block_].size - used_ < size) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    const size_t block_size = size > kBlockBytes ? size : kBlockBytes;
    blocks_.push_back({std::make_unique_for_overwrite<char[]>(block_size), block_size});
  }
  char* room = blocks_[block_].bytes.get() + used_;
  used_ += size;
  return room;
}

std::string_view Arena::Copy(std::string_view bytes) {
  if (bytes.empty()) return {};
  char* room = Allocate(bytes.size());
  std::memcpy(room, bytes.data(), bytes.size());
  return {room, bytes.size()};
}

void Arena::Clear() {
  // Drops oversized blocks, so one huge document does not pin its memory.
  std::erase_if(blocks_, [](const Block& block) { return block.size > kBlockBytes; });
  block_ = 0;
  used_ = 0;
}

void Batch::Add(const Document& document) {
  Document copy = document;
  for (std::string_view* text : {&copy.id, &copy.routing, &copy.body, &copy.position, &copy.defect})
    *text = arena.Copy(*text);
  documents.push_back(copy);
}

void Batch::Clear() {
  documents.clear();
  arena.Clear();
}

}  // namespace muster::pipeline
