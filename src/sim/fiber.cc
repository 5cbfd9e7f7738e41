#include "sim/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/fiber_sanitizer.h"

namespace muster::sim {
namespace {

constexpr size_t kPage = 4096;
// Only what is touched costs memory.
constexpr size_t kMappedBytes = 1 << 20;
constexpr size_t kStackBytes = kMappedBytes - kPage;

// The exceptions that are being thrown and handled, as the C++ ABI lays them out. It keeps them by
// thread, where those of several fibers would become one list.
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
  // A stack that grows too far ends the program there.
  if (memory == MAP_FAILED || mprotect(memory, kPage, PROT_NONE) != 0)
    throw std::system_error(errno, std::generic_category(), "no stack for a fiber");
  return memory;
}

}  // namespace

class Fiber::Stack {
 public:
  Stack() : memory_(MapStack()), sanitizer_(bottom(), kStackBytes) {}
  ~Stack() { munmap(memory_, kMappedBytes); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  void* bottom() const { return static_cast<char*>(memory_) + kPage; }
  Exceptions& exceptions() { return exceptions_; }
  FiberSanitizer& sanitizer() { return sanitizer_; }

 private:
  void* const memory_;
  Exceptions exceptions_;
  FiberSanitizer sanitizer_;
};

Fiber::Fiber() : stack_(std::make_unique<Stack>()) {}
Fiber::~Fiber() = default;

void Fiber::Start(std::function<void()> main) {
  main_ = std::move(main);
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_->bottom();
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = nullptr;
  // makecontext hands over nothing but int.
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&inside_, reinterpret_cast<void (*)()>(Run), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
}

void Fiber::Run(unsigned high, unsigned low) {
  reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low)->Enter();
}

void Fiber::Enter() {
  stack_->sanitizer().Arrived();
  main_();
  stack_->sanitizer().LeavesForGood();
  setcontext(&outside_);
}

void Fiber::Resume() {
  Swap(stack_->exceptions());
  stack_->sanitizer().Enters();
  swapcontext(&outside_, &inside_);
  stack_->sanitizer().Returned();
  Swap(stack_->exceptions());
}

void Fiber::Yield() {
  stack_->sanitizer().Leaves();
  swapcontext(&inside_, &outside_);
  stack_->sanitizer().Arrived();
}

}  // namespace muster::sim
