#pragma once

#include <functional>
#include <memory>

namespace muster::sim {

// A function with its own stack, on the thread that resumes it. Switching costs a fraction of a
// thread switch, and the simulator does little else.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Starts over; the previous function must have ended. Nothing runs until Resume, and no exception
  // may leave `main`.
  void Start(std::function<void()> main);

  // From outside: runs it until it yields or ends.
  void Resume();

  // From inside: returns with the next Resume.
  void Yield();

 private:
  class Stack;
  std::unique_ptr<Stack> stack_;
};

}  // namespace muster::sim
