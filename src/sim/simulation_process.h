#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "sim/fiber.h"
#include "sim/simulation.h"

namespace muster::sim {

struct Simulation::Thread {
  Process& process;
  std::string name;
  Fiber fiber = {};
  uint64_t ticket = 0;  // of its current wait; wake-ups with another are stale
  bool alive = false;
  // Its wait stops while the machine is suspended, like the clock the system uses for it; total
  // suspension when it began.
  bool sleeps = false;
  nanoseconds suspended{0};
};

struct Simulation::Process {
  std::string name;
  Main main;
  std::unique_ptr<Env> env;
  std::stop_source stop;
  std::chrono::hours clock_skew{0};
  nanoseconds suspended{0};  // so far
  nanoseconds stands_still_until{0};
  std::vector<std::unique_ptr<Thread>> threads;  // main's first; ended ones are reused
  bool doomed = false;                           // each thread crashes as soon as it has the baton
  bool unwinding = false;

  Thread& first() { return *threads.front(); }
};

}  // namespace muster::sim
