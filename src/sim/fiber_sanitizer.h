#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MUSTER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#if __has_feature(thread_sanitizer)
#define MUSTER_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#endif

namespace muster::sim {

// Says to a sanitizer that the stack is about to change, or has changed.
class FiberSanitizer {
 public:
#ifdef MUSTER_ASAN
  FiberSanitizer(const void* stack, size_t bytes) : stack_(stack), bytes_(bytes) {}

  void Enters() { __sanitizer_start_switch_fiber(&outside_frames_, stack_, bytes_); }
  void Arrived() { __sanitizer_finish_switch_fiber(frames_, &outside_stack_, &outside_bytes_); }
  void Leaves() { __sanitizer_start_switch_fiber(&frames_, outside_stack_, outside_bytes_); }
  void LeavesForGood() {
    frames_ = nullptr;
    __sanitizer_start_switch_fiber(nullptr, outside_stack_, outside_bytes_);
  }
  void Returned() { __sanitizer_finish_switch_fiber(outside_frames_, nullptr, nullptr); }

 private:
  const void* stack_;
  size_t bytes_;
  void* frames_ = nullptr;
  void* outside_frames_ = nullptr;
  const void* outside_stack_ = nullptr;
  size_t outside_bytes_ = 0;
#elif defined(MUSTER_TSAN)
  FiberSanitizer(const void*, size_t) {}
  ~FiberSanitizer() { __tsan_destroy_fiber(inside_); }
  FiberSanitizer(const FiberSanitizer&) = delete;
  FiberSanitizer& operator=(const FiberSanitizer&) = delete;

  void Enters() {
    outside_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(inside_, 0);
  }
  void Arrived() {}
  void Leaves() { __tsan_switch_to_fiber(outside_, 0); }
  void LeavesForGood() { Leaves(); }
  void Returned() {}

 private:
  void* const inside_ = __tsan_create_fiber(0);
  void* outside_ = nullptr;
#else
  FiberSanitizer(const void*, size_t) {}
  void Enters() {}
  void Arrived() {}
  void Leaves() {}
  void LeavesForGood() {}
  void Returned() {}
#endif
};

}  // namespace muster::sim
