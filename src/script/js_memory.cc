#include "script/js_memory.h"

#include <malloc.h>
#include <quickjs.h>

#include <algorithm>
#include <cstdlib>

namespace muster::script {

void* JsMemory::Allocate(size_t count, size_t size) {
  if (size != 0 && count > limit_ / size) {
    was_refused_ = true;
    return nullptr;
  }
  if (!Allows(count * size)) return nullptr;
  return Keep(std::calloc(count, size));
}

void* JsMemory::Reallocate(void* block, size_t size) {
  const size_t before = malloc_usable_size(block);
  if (size > before && !Allows(size - before)) return nullptr;
  void* moved = std::realloc(block, size);
  if (moved == nullptr && size != 0) return nullptr;
  held_ -= std::min(held_, before);
  return Keep(moved);
}

void JsMemory::Free(void* block) {
  held_ -= std::min(held_, malloc_usable_size(block));
  std::free(block);
}

bool JsMemory::Allows(size_t more) {
  if (more <= limit_ - held_) return true;
  was_refused_ = true;
  return false;
}

// The allocator may return slightly more than requested.
void* JsMemory::Keep(void* block) {
  held_ = std::min(limit_, held_ + malloc_usable_size(block));
  return block;
}

const JSMallocFunctions& JsMemory::Functions() {
  static constexpr JSMallocFunctions kFunctions = {
      .js_calloc = [](void* self, size_t count, size_t size) -> void* {
        return static_cast<JsMemory*>(self)->Allocate(count, size);
      },
      .js_malloc = [](void* self, size_t size) -> void* {
        return static_cast<JsMemory*>(self)->Reallocate(nullptr, size);
      },
      .js_free = [](void* self, void* block) { static_cast<JsMemory*>(self)->Free(block); },
      .js_realloc = [](void* self, void* block, size_t size) -> void* {
        return static_cast<JsMemory*>(self)->Reallocate(block, size);
      },
      .js_malloc_usable_size = [](const void* block) -> size_t {
        return malloc_usable_size(const_cast<void*>(block));
      }};
  return kFunctions;
}

}  // namespace muster::script
