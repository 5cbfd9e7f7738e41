#pragma once

#include <cstddef>

struct JSMallocFunctions;

namespace muster::script {

// What a script has allocated, and whether it was ever refused more. QuickJS has its own limit but
// does not report reaching it: it may then throw anything.
class JsMemory {
 public:
  explicit JsMemory(size_t limit) : limit_(limit) {}
  JsMemory(const JsMemory&) = delete;
  JsMemory& operator=(const JsMemory&) = delete;

  // For JS_NewRuntime2, with the JsMemory as its opaque pointer.
  static const JSMallocFunctions& Functions();

  bool was_refused() const { return was_refused_; }

  void* Allocate(size_t count, size_t size);
  void* Reallocate(void* block, size_t size);
  void Free(void* block);

 private:
  bool Allows(size_t more);
  void* Keep(void* block);

  const size_t limit_;
  size_t held_ = 0;
  bool was_refused_ = false;
};

}  // namespace muster::script
