#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/guard.h"
#include "muster/env.h"
#include "sim/random.h"

namespace muster::sim {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// What can go wrong.
enum class Fault {
  kCrash,         // a process ends at once; it restarts later
  kPause,         // a process pauses, longer than a lease may last
  kTerminate,     // a process is asked to stop, and restarts later
  kClockSkew,     // a process's wall clock is an hour off
  kLostRequest,   // a request never arrives
  kDelayedWrite,  // a request arrives long after its sender gave up
  kDuplicate,     // a request arrives twice
  kLostReply,     // the request was carried out, but the reply is lost
  kOutage,        // the store is unreachable for a while
  kReadOnly,      // the store rejects writes for a while
  kClockJump,     // the store's clock jumps
  kTornWrite,     // of several changes in one request only some are applied
  kThrottle,      // a service rejects many requests for a while, or parts of them
  kStaleRead,     // claims pick from an old view of the store
  kGoBack,        // the store goes back in time
  kPowerLoss,     // all processes and the store lose power at the same moment
  // Each kind from here on has its own random numbers: where it is not allowed, older seeds behave
  // as before.
  kSuspend,  // the machine of a process is suspended: it stops, and so do some of its clocks
  kHang,     // a thread's call hangs, longer than a lease may last; the others continue
  // From here on, each kind has its own random numbers, shared with no other.
  kFailedSync,   // the disk reports that data may not have reached it, once
  kRestoredLog,  // an event log loses its last events, and then gets others
  kLateCommit,   // a transaction that appends to an event log commits after later ones
};
inline constexpr size_t kFaultKinds = 21;
std::string_view FaultName(Fault fault);

// Which faults a run may have, and how many. Fewer make a failure easier to read.
struct FaultPlan {
  std::array<bool, kFaultKinds> allowed;
  int most = 1'000'000;
  int64_t crash_at = 0;  // in addition: the process that makes this call of the run crashes in it

  FaultPlan() { allowed.fill(true); }
  static FaultPlan None() {
    FaultPlan plan;
    plan.allowed.fill(false);
    return plan;
  }
};

// How often each thing happened, by name.
using Counters = std::map<std::string, int, std::less<>>;

// A broken invariant.
struct Violation {
  std::string invariant;  // the letter in the fault catalogue: F, E, P, …
  std::string message;
};

// Many processes of real code in one thread. Each thread of a process is a fiber, and the one with
// the baton runs; at every call of its Env and of a simulated service it may lose the baton, and
// its process may pause or crash. Scheduling, faults and durations depend on the seed alone, so
// that a seed reproduces a run exactly.
//
// Faults happen until kFaultTime has passed: the safety phase. In the liveness phase that follows
// nothing fails any more, and every process must end before kTimeLimit.
class Simulation {
 public:
  static constexpr nanoseconds kFaultTime = std::chrono::minutes(5);
  static constexpr nanoseconds kTimeLimit = std::chrono::hours(6);

  // Without `keep_trace` the trace is only hashed.
  Simulation(uint64_t seed, FaultPlan plan, bool keep_trace = true);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // A process's main function, restarted after every crash. It ends for good when it returns
  // without having been asked to stop.
  using Main = std::function<void(Env& env, std::stop_token stop)>;
  void AddProcess(std::string name, Main main);

  // Runs everything to the end or to the first violation.
  void Run();

  // After Run: the broken invariant, if any.
  const std::optional<Violation>& violation() const { return violation_; }
  std::vector<std::string>& trace() { return trace_; }
  uint64_t trace_hash() const { return trace_hash_; }
  int faults_fired() const { return faults_fired_; }
  int crashes() const { return crashes_; }
  int64_t calls() const { return calls_; }  // of an Env or a service, by any process
  Counters& sometimes() { return sometimes_; }

  // For simulated services and workloads, within Run.

  nanoseconds now() const { return now_; }
  Random& random() { return random_; }
  // For the terms of the work alone, so that they do not move the other choices of a seed.
  Random& terms() { return terms_; }
  // For lasting faults: whether it may be active now.
  bool Allows(Fault fault) const {
    return faults_on() && plan_.allowed[static_cast<size_t>(fault)];
  }
  bool HasFired(Fault fault) const { return fired_[static_cast<size_t>(fault)]; }
  bool faults_on() const { return now_ < kFaultTime && faults_fired_ < plan_.most; }

  // Decides whether a fault fires here, with a chance of one in `odds`.
  bool Fires(Fault fault, uint64_t odds);

  // The numbers that a fault is drawn from, also for what it does.
  Random& RandomOf(Fault fault) {
    if (fault < Fault::kSuspend) return random_;
    return fault < Fault::kFailedSync ? added_random_ : own_random_.at(fault);
  }

  // A fault that has fired lasts this long.
  void Lasts(nanoseconds duration) { calm_since_ = std::max(calm_since_, now_ + duration); }

  // The end of the last fault so far; asking a process to stop is not one.
  nanoseconds calm_since() const { return calm_since_; }

  // Lets `duration` pass for the current thread while others run. Its process may crash here.
  void Pass(nanoseconds duration);

  // As Env::Sleep of the current process.
  bool Sleep(nanoseconds duration, const std::stop_token& stop);

  // Since when the current process has been running without a pause.
  nanoseconds RunsSince() const;

  // Asks the current process to stop later, as by SIGTERM.
  void AskToStop(nanoseconds delay);

  // Suspends the current process's machine later.
  void SuspendLater(nanoseconds delay);

  // Kills the current process at once, as by kill -9.
  [[noreturn]] void Crash(std::string_view why);

  // Kills all processes at once. Only outside of any process, in an action of After.
  void CutPower();

  // Whether the current process is being unwound after a crash: its last calls must have no effect.
  bool Unwinding() const;

  // The name of the current process; the world's outside of any.
  std::string_view CurrentName() const;

  // Runs `action` later, outside of any process.
  void After(nanoseconds delay, std::function<void()> action);

  // Adds a line to the trace, with the name of the current thread.
  void Note(std::string_view text);

  // Counts an event that a campaign should cover.
  void Sometimes(std::string_view what);

  void Violate(std::string invariant, std::string message);

 private:
  struct Process;
  struct Thread;
  class ProcessEnv;
  class Joining;
  struct ProcessCrash : ProcessEnd {};
  struct Event {
    nanoseconds time;
    uint64_t order;              // random: the order of simultaneous events differs by seed
    Thread* wakes;               // most events only wake a thread
    uint64_t ticket;             // the wait of that thread that it ends
    std::function<void()> acts;  // if it wakes none
    bool operator>(const Event& other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };

  void Push(Event event);
  Event Pop();
  void Wake(const Event& event);
  void Start(Process& process);
  void RunProcess(Process& process);
  void RunAll(Process& process, std::vector<std::function<void()>> works);
  static Thread& NewThread(Process& process);
  void PassBatonTo(Thread& thread);
  void End(Process& process);
  void DropBaton(Thread& thread, std::optional<nanoseconds> duration);
  void Freeze(Process& process, nanoseconds duration);
  void WakeAfter(Thread& thread, nanoseconds delay);
  void FaultPoint();
  nanoseconds Suspend(Process& process);
  void Ended(Process& process, bool crashed);
  void Terminate(Process& process);

  // How often a fault fires in this seed: with all of them in every seed, one would hide what
  // another shows.
  enum class Mood { kNever, kSeldom, kUsual, kOften };

  Random random_;
  Random added_random_;
  Random terms_;
  std::map<Fault, Random> own_random_;
  const FaultPlan plan_;
  const bool keep_trace_;
  std::array<Mood, kFaultKinds> moods_;
  nanoseconds now_{0};
  std::vector<Event> events_;  // a heap, the earliest first
  std::vector<std::unique_ptr<Process>> processes_;
  Thread* current_ = nullptr;
  int faults_fired_ = 0;
  int crashes_ = 0;
  nanoseconds calm_since_{0};
  std::array<bool, kFaultKinds> fired_{};
  int64_t calls_ = 0;
  std::optional<Violation> violation_;
  std::vector<std::string> trace_;
  uint64_t trace_hash_;
  Counters sometimes_;
};

}  // namespace muster::sim
