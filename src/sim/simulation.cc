#include "sim/simulation.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/fnv.h"
#include "base/mono_clock.h"
#include "sim/fiber.h"

namespace muster::sim {
namespace {

constexpr WallTime kStartOfTime{std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)};
constexpr std::chrono::hours kClockSkew{1};
constexpr nanoseconds kLongestPause = std::chrono::seconds(90);
constexpr nanoseconds kLongestSuspension = std::chrono::minutes(3);
constexpr nanoseconds kLongestGrace = std::chrono::milliseconds(500);
constexpr nanoseconds kLongestDowntime = std::chrono::seconds(40);

constexpr std::string_view kFaultNames[kFaultKinds] = {
    "crash",     "pause",      "terminate", "clock-skew", "lost-request", "delayed-write",
    "duplicate", "lost-reply", "outage",    "read-only",  "clock-jump",   "torn-write",
    "throttle",  "stale-read", "go-back",   "power-loss", "suspend"};

}  // namespace

std::string_view FaultName(Fault fault) { return kFaultNames[static_cast<size_t>(fault)]; }

struct Simulation::Process {
  std::string name;
  Main main;
  std::unique_ptr<ProcessEnv> env;
  std::stop_source stop;
  std::chrono::hours clock_skew{0};
  nanoseconds suspended{0};  // so far
  Fiber fiber;
  uint64_t ticket = 0;  // of its current wait; wake-ups with another are stale
  bool waits_for_stop = false;
  bool alive = false;
  bool doomed = false;  // crashes as soon as it has the baton
  bool unwinding = false;
};

// What a process sees of the world. Every call is a point where it may pause or crash.
class Simulation::ProcessEnv final : public Env {
 public:
  ProcessEnv(Simulation& sim, Process& process) : sim_(sim), process_(process) {}

  WallTime WallNow() override {
    const auto now = kStartOfTime + std::chrono::floor<milliseconds>(sim_.now_);
    sim_.FaultPoint(process_);
    return now + process_.clock_skew;
  }

  // The time is read first: a pause afterwards makes the answer a thing of the past.
  MonoTime MonoNow() override {
    const bool goes_on = MonoClock() == CLOCK_BOOTTIME;
    const MonoTime now{sim_.now_ - (goes_on ? nanoseconds(0) : process_.suspended)};
    sim_.FaultPoint(process_);
    return now;
  }

  bool Sleep(nanoseconds duration, std::stop_token stop) override {
    return sim_.Sleep(process_, duration, stop);
  }

  uint64_t Random() override {
    sim_.FaultPoint(process_);
    return sim_.random_.Next();
  }

 private:
  Simulation& sim_;
  Process& process_;
};

Simulation::Simulation(uint64_t seed, FaultPlan plan, bool keep_trace)
    : random_(seed),
      added_random_(~seed),
      plan_(plan),
      keep_trace_(keep_trace),
      trace_hash_(kFnvStart) {
  for (size_t kind = 0; kind < kFaultKinds; ++kind) {
    moods_[kind] = static_cast<Mood>(RandomOf(static_cast<Fault>(kind)).Between(0, 3));
  }
}

// Whatever still runs is unwound, so that what it holds is freed.
Simulation::~Simulation() {
  for (const auto& process : processes_) {
    if (!process->alive) continue;
    process->doomed = true;
    GiveBatonTo(*process);
  }
}

void Simulation::AddProcess(std::string name, Main main) {
  auto process = std::make_unique<Process>();
  process->name = std::move(name);
  process->main = std::move(main);
  process->env = std::make_unique<ProcessEnv>(*this, *process);
  Process& added = *process;
  processes_.push_back(std::move(process));
  After(random_.UpTo<int64_t, std::nano>(std::chrono::seconds(5)),
        [this, &added] { Start(added); });
}

void Simulation::Run() {
  while (!events_.empty() && !violation_) {
    const Event event = Pop();
    now_ = std::max(now_, event.time);
    if (now_ > kTimeLimit) {
      Violate("V", "not everything has ended after " +
                       std::to_string(std::chrono::floor<std::chrono::hours>(now_).count()) +
                       " hours");
      break;
    }
    if (event.wakes == nullptr) {
      event.acts();
    } else if (event.wakes->alive && event.wakes->ticket == event.ticket) {
      GiveBatonTo(*event.wakes);
    }
  }
}

void Simulation::Push(Event event) {
  events_.push_back(std::move(event));
  std::push_heap(events_.begin(), events_.end(), std::greater<>());
}

Simulation::Event Simulation::Pop() {
  std::pop_heap(events_.begin(), events_.end(), std::greater<>());
  Event event = std::move(events_.back());
  events_.pop_back();
  return event;
}

void Simulation::Start(Process& process) {
  process.stop = std::stop_source();
  process.alive = true;
  process.doomed = false;
  process.unwinding = false;
  process.clock_skew = std::chrono::hours(0);
  if (Fires(Fault::kClockSkew, 4)) {
    process.clock_skew = random_.OneIn(2) ? kClockSkew : -kClockSkew;
  }
  process.fiber.Start([this, &process] { RunProcess(process); });
  GiveBatonTo(process);
}

void Simulation::RunProcess(Process& process) {
  bool crashed = false;
  try {
    if (process.doomed) throw ProcessCrash{};
    Note("starts");
    process.main(*process.env, process.stop.get_token());
    Note("ends");
  } catch (const ProcessCrash&) {
    crashed = true;
  }
  process.alive = false;
  Ended(process, crashed);
}

void Simulation::Ended(Process& process, bool crashed) {
  if (!crashed && !process.stop.stop_requested()) return;
  After(random_.UpTo(kLongestDowntime), [this, &process] { Start(process); });
}

// Runs the process until it waits for something or ends.
void Simulation::GiveBatonTo(Process& process) {
  current_ = &process;
  process.fiber.Resume();
  current_ = nullptr;
}

void Simulation::WakeAfter(Process& process, nanoseconds delay) {
  Push({now_ + delay, random_.Next(), &process, process.ticket, {}});
}

void Simulation::Pass(nanoseconds duration) {
  Process& process = *current_;
  if (process.unwinding) return;
  FaultPoint(process);
  LoseBaton(process, duration);
}

void Simulation::LoseBaton(Process& process, nanoseconds duration) {
  ++process.ticket;
  WakeAfter(process, duration);
  process.fiber.Yield();
  if (process.doomed) {
    process.unwinding = true;
    throw ProcessCrash{};
  }
}

bool Simulation::Sleep(Process& process, nanoseconds duration, const std::stop_token& stop) {
  FaultPoint(process);
  if (process.unwinding || stop.stop_requested()) return false;
  const nanoseconds end = now_ + duration;
  process.waits_for_stop = stop.stop_possible();
  LoseBaton(process, duration);
  process.waits_for_stop = false;
  return now_ >= end && !stop.stop_requested();
}

void Simulation::FaultPoint(Process& process) {
  if (process.unwinding) return;
  if (++calls_ == plan_.crash_at) Crash("planned");
  if (Fires(Fault::kCrash, 400)) Crash("fault");
  if (Fires(Fault::kTerminate, 250)) {
    After(random_.UpTo(kLongestGrace), [this, &process] { Terminate(process); });
  }
  if (Fires(Fault::kPause, 300)) {
    const nanoseconds pause = random_.UpTo(kLongestPause);
    Note("pauses for " + std::to_string(std::chrono::floor<milliseconds>(pause).count()) + " ms");
    LoseBaton(process, pause);
  }
  if (Fires(Fault::kSuspend, 600)) Suspend(process);
}

void Simulation::Suspend(Process& process) {
  const nanoseconds time = added_random_.UpTo(kLongestSuspension);
  Note("is suspended for " + std::to_string(std::chrono::floor<milliseconds>(time).count()) +
       " ms");
  Sometimes("a machine is suspended");
  process.suspended += time;
  LoseBaton(process, time);
}

void Simulation::Terminate(Process& process) {
  if (!process.alive || process.stop.stop_requested()) return;
  Note(process.name + " is asked to stop");
  process.stop.request_stop();
  if (process.waits_for_stop) WakeAfter(process, nanoseconds(0));
}

void Simulation::Crash(std::string_view why) {
  Note("crashes: " + std::string(why));
  current_->unwinding = true;
  throw ProcessCrash{};
}

void Simulation::CutPower() {
  Note("the power fails");
  for (const auto& process : processes_) {
    if (!process->alive) continue;
    process->doomed = true;
    GiveBatonTo(*process);
  }
}

bool Simulation::Unwinding() const { return current_ != nullptr && current_->unwinding; }

std::string_view Simulation::CurrentName() const {
  return current_ != nullptr ? std::string_view(current_->name) : "world";
}

bool Simulation::Fires(Fault fault, uint64_t odds) {
  const Mood mood = moods_[static_cast<size_t>(fault)];
  if (mood == Mood::kOften) odds = std::max<uint64_t>(2, odds / 4);
  if (mood == Mood::kSeldom) odds *= 4;
  // The number is drawn in any case, so that a fault that is not allowed moves no other.
  const bool drawn = RandomOf(fault).OneIn(odds) && mood != Mood::kNever;
  if (!drawn || !faults_on() || !plan_.allowed[static_cast<size_t>(fault)]) return false;
  ++faults_fired_;
  fired_[static_cast<size_t>(fault)] = true;
  Note("fault: " + std::string(FaultName(fault)));
  return true;
}

void Simulation::After(nanoseconds delay, std::function<void()> action) {
  Push({now_ + delay, random_.Next(), nullptr, 0, std::move(action)});
}

void Simulation::Note(std::string_view text) {
  constexpr std::string_view kBlanks = "            ";
  char digits[24];
  const char* const end = std::to_chars(digits, std::end(digits),
                                        std::chrono::floor<std::chrono::microseconds>(now_).count())
                              .ptr;
  const std::string_view time(digits, static_cast<size_t>(end - digits));
  const std::string_view parts[] = {kBlanks.substr(std::min(kBlanks.size(), time.size())),
                                    time,
                                    " us  ",
                                    CurrentName(),
                                    "  ",
                                    text};
  for (const std::string_view part : parts) trace_hash_ = Fnv1a(part, trace_hash_);
  if (!keep_trace_) return;
  std::string& line = trace_.emplace_back();
  for (const std::string_view part : parts) line += part;
}

void Simulation::Sometimes(std::string_view what) {
  auto found = sometimes_.find(what);
  if (found == sometimes_.end()) found = sometimes_.emplace(what, 0).first;
  ++found->second;
}

void Simulation::Violate(std::string invariant, std::string message) {
  if (violation_) return;
  Note("VIOLATION of " + invariant + ": " + message);
  violation_ = Violation{std::move(invariant), std::move(message)};
}

}  // namespace muster::sim
