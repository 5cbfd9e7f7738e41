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

#include "base/guard.h"
#include "muster/env.h"
#include "sim/random.h"

namespace muster::sim {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// What can go wrong.
enum class Fault {
  kCrash,         // a process ends at once; it starts again later
  kPause,         // a process stands still, longer than a lease may last
  kTerminate,     // a process is asked to stop, and starts again later
  kClockSkew,     // a process's wall clock is an hour off
  kLostRequest,   // a request never arrives
  kDelayedWrite,  // a request arrives long after its sender gave up
  kDuplicate,     // a request arrives twice
  kLostReply,     // the request was carried out, the sender never hears of it
  kOutage,        // the store cannot be reached for a while
  kReadOnly,      // the store takes no writes for a while
  kClockJump,     // the store's clock jumps
  kTornWrite,     // of several changes in one request only some are applied
  kThrottle,      // a service refuses many requests for a while, or parts of them
  kStaleRead,     // what is claimed was picked by an old view of the store
  kGoBack,        // the store is what it was some time ago
  kPowerLoss,     // all processes and the store lose power at the same moment
  // Each kind from here on draws its numbers apart: where it is not allowed, a seed that is older
  // does what it always did.
  kSuspend,  // the machine of a process is suspended: it stands still, and so do some of its clocks
  kHang,     // a call of a thread hangs, longer than a lease may last; the others go on
};
inline constexpr size_t kFaultKinds = 18;
std::string_view FaultName(Fault fault);

// Which faults a run may have, and how many. Fewer of both make a failure easier to read.
struct FaultPlan {
  std::array<bool, kFaultKinds> allowed;
  int most = 1'000'000;
  int64_t crash_at =
      0;  // beside all that: the process that makes this call of the run crashes in it

  FaultPlan() { allowed.fill(true); }
  static FaultPlan None() {
    FaultPlan plan;
    plan.allowed.fill(false);
    return plan;
  }
};

// How often each thing happened, by its name.
using Counters = std::map<std::string, int, std::less<>>;

// A property that must always hold was broken.
struct Violation {
  std::string invariant;  // the letter in the fault catalogue: F, E, P, …
  std::string message;
};

// Many processes of real code in one thread. Each thread of a process is a fiber, and the one that
// has the baton runs; at every call of its Env and of a simulated service it may lose the baton,
// and its process may pause or crash. Who goes on, what fails, how often and how long everything
// takes follows from the seed alone, so that a seed repeats a run exactly.
//
// Faults happen until kFaultTime has passed: the safety phase. In the liveness phase that follows
// nothing fails any more, and every process must end before kTimeLimit.
class Simulation {
 public:
  static constexpr nanoseconds kFaultTime = std::chrono::minutes(5);
  static constexpr nanoseconds kTimeLimit = std::chrono::hours(6);

  // Without `keep_trace` the trace is hashed and not kept.
  Simulation(uint64_t seed, FaultPlan plan, bool keep_trace = true);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // What a process runs, from the start after every crash. It ends for good when it returns
  // without having been asked to stop.
  using Main = std::function<void(Env& env, std::stop_token stop)>;
  void AddProcess(std::string name, Main main);

  // Runs everything to its end or to the first violation.
  void Run();

  // After Run: what was broken, if anything.
  const std::optional<Violation>& violation() const { return violation_; }
  std::vector<std::string>& trace() { return trace_; }
  uint64_t trace_hash() const { return trace_hash_; }
  int faults_fired() const { return faults_fired_; }
  int crashes() const { return crashes_; }
  int64_t calls() const { return calls_; }  // of an Env or a service, by any process
  Counters& sometimes() { return sometimes_; }

  // For simulated services and for workloads, within Run.

  nanoseconds now() const { return now_; }
  Random& random() { return random_; }
  // For what lasts: whether the fault may be there now.
  bool Allows(Fault fault) const {
    return faults_on() && plan_.allowed[static_cast<size_t>(fault)];
  }
  bool HasFired(Fault fault) const { return fired_[static_cast<size_t>(fault)]; }
  bool faults_on() const { return now_ < kFaultTime && faults_fired_ < plan_.most; }

  // Decides whether a fault happens here, with a chance of one in `odds`.
  bool Fires(Fault fault, uint64_t odds);

  // A fault that has fired lasts for so long.
  void Lasts(nanoseconds duration) { calm_since_ = std::max(calm_since_, now_ + duration); }

  // When the last fault is over that has fired so far; one that asks a process to stop is none.
  nanoseconds calm_since() const { return calm_since_; }

  // Lets `duration` pass for the current thread while others run. Its process may crash here.
  void Pass(nanoseconds duration);

  // As Env::Sleep of the current process.
  bool Sleep(nanoseconds duration, const std::stop_token& stop);

  // Since when the current process runs without having stood still.
  nanoseconds RunsSince() const;

  // The current process is asked to stop later, as by SIGTERM.
  void AskToStop(nanoseconds delay);

  // The machine of the current process is suspended later.
  void SuspendLater(nanoseconds delay);

  // The current process disappears at once, as by kill -9.
  [[noreturn]] void Crash(std::string_view why);

  // All processes disappear at once. Apart from any process, that is in an action of After.
  void CutPower();

  // Whether the current process is being unwound after a crash: its last calls must have no effect.
  bool Unwinding() const;

  // The name of the current process; of the world itself outside of any.
  std::string_view CurrentName() const;

  // Runs `action` at a later time, apart from any process.
  void After(nanoseconds delay, std::function<void()> action);

  // Adds a line to the trace, with the name of the current thread.
  void Note(std::string_view text);

  // Counts that something we want to see has really happened.
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
    uint64_t order;              // drawn at random: who acts first at the same time differs by seed
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
  Random& RandomOf(Fault fault) { return fault < Fault::kSuspend ? random_ : added_random_; }
  void Ended(Process& process, bool crashed);
  void Terminate(Process& process);

  // How often a fault happens in this seed: with all of them in each, one hides what another would
  // have shown.
  enum class Mood { kNever, kSeldom, kUsual, kOften };

  Random random_;
  Random added_random_;
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
