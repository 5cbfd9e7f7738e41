#include "sim/fiber.h"

#include <cxxabi.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "core/interrupt.h"

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
namespace {

constexpr size_t kPage = 4096;
// Only what is touched costs memory.
constexpr size_t kMappedBytes = 1 << 20;
constexpr size_t kStackBytes = kMappedBytes - kPage;

// The exceptions in flight, as laid out by the C++ ABI. It keeps them per thread, where those of
// several fibers would be mixed up.
struct Exceptions {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

void Swap(Exceptions& kept) {
  Exceptions current;
  void* const place = abi::__cxa_get_globals();
  std::memcpy(&current, place, sizeof current);
  std::memcpy(place, &kept, sizeof kept);
  kept = current;
}

void* MapStack() {
  void* memory =
      mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // A stack overflow ends the program.
  if (memory == MAP_FAILED || mprotect(memory, kPage, PROT_NONE) != 0)
    throw std::system_error(errno, std::generic_category(), "no stack for a fiber");
  return memory;
}

// Idle stacks. Mapping one and touching its pages costs more than a short process does.
class Stacks {
 public:
  Stacks() = default;
  ~Stacks() {
    for (void* memory : unused_) munmap(memory, kMappedBytes);
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  void* Take() {
    if (unused_.empty()) return MapStack();
    void* memory = unused_.back();
    unused_.pop_back();
    return memory;
  }

  void GiveBack(void* memory) {
    if (kReused && unused_.size() < kMostUnused) return unused_.push_back(memory);
    munmap(memory, kMappedBytes);
  }

 private:
#if defined(MUSTER_ASAN) || defined(MUSTER_TSAN)
  static constexpr bool kReused = false;
#else
  static constexpr bool kReused = true;
#endif
  static constexpr size_t kMostUnused = 128;

  std::vector<void*> unused_;
};

Stacks& StacksOfThread() {
  thread_local Stacks stacks;
  return stacks;
}

// Informs a sanitizer that the stack is about to change, or has changed.
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

// Where a stack is left and entered again.
#if defined(MUSTER_ASAN) || defined(MUSTER_TSAN)
class Switch {
 public:
  void Prepare(void* bottom, void (*main)()) {
    getcontext(&inside_);
    inside_.uc_stack.ss_sp = bottom;
    inside_.uc_stack.ss_size = kStackBytes;
    inside_.uc_link = nullptr;
    makecontext(&inside_, main, 0);
  }
  void Enter() { swapcontext(&outside_, &inside_); }
  void Leave() { swapcontext(&inside_, &outside_); }
  [[noreturn]] void LeaveForGood() {
    setcontext(&outside_);
    std::abort();
  }

 private:
  ucontext_t inside_{};
  ucontext_t outside_{};
};
#else
// The C library's contexts save the signal mask with a system call: they are only used to enter a
// stack for the first time.
class Switch {
 public:
  void Prepare(void* bottom, void (*main)()) {
    getcontext(&first_);
    first_.uc_stack.ss_sp = bottom;
    first_.uc_stack.ss_size = kStackBytes;
    first_.uc_link = nullptr;
    makecontext(&first_, main, 0);
    entered_ = false;
  }
  void Enter() {
    if (_setjmp(outside_) != 0) return;
    if (entered_) _longjmp(inside_, 1);
    entered_ = true;
    setcontext(&first_);
  }
  void Leave() {
    if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
  }
  [[noreturn]] void LeaveForGood() { _longjmp(outside_, 1); }

 private:
  bool entered_ = false;
  ucontext_t first_{};
  jmp_buf inside_{};
  jmp_buf outside_{};
};
#endif

}  // namespace

class Fiber::Stack {
 public:
  Stack() : memory_(StacksOfThread().Take()), sanitizer_(Bottom(), kStackBytes) {}
  ~Stack() { StacksOfThread().GiveBack(memory_); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  void Start(std::function<void()> main) {
    main_ = std::move(main);
    switch_.Prepare(Bottom(), Run);
  }

  void Enter() {
    entered = this;
    SwapKeptByThread();
    sanitizer_.Enters();
    switch_.Enter();
    sanitizer_.Returned();
    SwapKeptByThread();
  }

  void Leave() {
    sanitizer_.Leaves();
    switch_.Leave();
    sanitizer_.Arrived();
  }

 private:
  static void Run() {
    Stack& self = *entered;
    self.sanitizer_.Arrived();
    self.main_();
    self.sanitizer_.LeavesForGood();
    self.switch_.LeaveForGood();
  }

  void SwapKeptByThread() {
    Swap(exceptions_);
    interrupt_ = ExchangeInterrupt(std::move(interrupt_));
  }

  // Passes the fiber to a stack entered for the first time: makecontext cannot pass a pointer.
  static inline thread_local Stack* entered = nullptr;

  void* Bottom() const { return static_cast<char*>(memory_) + kPage; }

  void* const memory_;
  FiberSanitizer sanitizer_;
  std::function<void()> main_;
  Exceptions exceptions_;
  std::stop_token interrupt_;
  Switch switch_;
};

Fiber::Fiber() : stack_(std::make_unique<Stack>()) {}
Fiber::~Fiber() = default;

void Fiber::Start(std::function<void()> main) { stack_->Start(std::move(main)); }
void Fiber::Resume() { stack_->Enter(); }
void Fiber::Yield() { stack_->Leave(); }

}  // namespace muster::sim
