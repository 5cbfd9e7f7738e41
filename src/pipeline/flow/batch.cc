#include <cstring>

#include "muster/pipeline.h"

namespace muster::pipeline {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;

}  // namespace

struct Arena::State {
  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
  };
  std::vector<Block> blocks;
  size_t block = 0;  // the one in use
  size_t used = 0;   // of it
};

Arena::Arena() = default;
Arena::Arena(Arena&& other) noexcept = default;
Arena& Arena::operator=(Arena&& other) noexcept = default;
Arena::~Arena() = default;

char* Arena::Allocate(size_t size) {
  if (!state_) state_ = std::make_unique<State>();
  auto& [blocks, block, used] = *state_;
  while (block < blocks.size() && blocks[block].size - used < size) {
    ++block;
    used = 0;
  }
  if (block == blocks.size()) {
    const size_t block_size = size > kBlockBytes ? size : kBlockBytes;
    blocks.push_back({std::make_unique_for_overwrite<char[]>(block_size), block_size});
  }
  char* room = blocks[block].bytes.get() + used;
  used += size;
  return room;
}

std::string_view Arena::Copy(std::string_view bytes) {
  if (bytes.empty()) return {};
  char* room = Allocate(bytes.size());
  std::memcpy(room, bytes.data(), bytes.size());
  return {room, bytes.size()};
}

void Arena::Clear() {
  if (!state_) return;
  // Drops oversized blocks, so one huge document does not pin its memory.
  std::erase_if(state_->blocks, [](const State::Block& block) { return block.size > kBlockBytes; });
  state_->block = 0;
  state_->used = 0;
}

void Batch::Add(const Document& document) {
  Document copy = document;
  for (std::string_view* text :
       {&copy.id, &copy.routing, &copy.body, &copy.position, &copy.defect, &copy.target})
    *text = arena.Copy(*text);
  documents.push_back(copy);
}

void Batch::Clear() {
  documents.clear();
  arena.Clear();
}

}  // namespace muster::pipeline
