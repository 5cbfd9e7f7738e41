#include "sim/simulation.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "core/mono_clock.h"
#include "sim/simulation_process.h"

namespace muster::sim {
namespace {

constexpr WallTime kStartOfTime{std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)};
constexpr std::chrono::hours kClockSkew{1};
constexpr nanoseconds kLongestDowntime = std::chrono::seconds(40);
constexpr uint64_t kOwnNumbers = 0xd1342543de82ef95;
constexpr uint64_t kNumberOfTerms = 1'000;  // beyond any kind of fault

// Eight bytes at a time: records are large, and most seeds are run for their hash alone.
uint64_t HashOn(uint64_t hash, std::string_view bytes) {
  constexpr uint64_t kFactor = 0x9fb21c651e98df25;
  hash ^= bytes.size();
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), sizeof hash))) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

// A process's view of the world. Every call is a point where it may pause or crash.
class Simulation::ProcessEnv final : public Env {
 public:
  ProcessEnv(Simulation& sim, Process& process) : sim_(sim), process_(process) {}

  WallTime WallNow() override {
    const auto now = kStartOfTime + std::chrono::floor<milliseconds>(sim_.now_);
    sim_.FaultPoint();
    return now + process_.clock_skew;
  }

  // The time is read first: a pause afterwards makes the answer stale.
  MonoTime MonoNow() override {
    const bool goes_on = MonoClock() == CLOCK_BOOTTIME;
    const MonoTime now{sim_.now_ - (goes_on ? nanoseconds(0) : process_.suspended)};
    sim_.FaultPoint();
    return now;
  }

  bool Sleep(nanoseconds duration, std::stop_token stop) override {
    return sim_.Sleep(duration, stop);
  }

  uint64_t Random() override {
    sim_.FaultPoint();
    return sim_.random_.Next();
  }

  void RunAll(std::vector<std::function<void()>> threads) override {
    sim_.RunAll(process_, std::move(threads));
  }

 private:
  Simulation& sim_;
  Process& process_;
};

Simulation::Simulation(uint64_t seed, FaultPlan plan, bool keep_trace)
    : random_(seed),
      added_random_(~seed),
      terms_(seed ^ (kOwnNumbers * kNumberOfTerms)),
      plan_(plan),
      keep_trace_(keep_trace),
      trace_hash_(1) {
  for (auto kind = static_cast<size_t>(Fault::kFailedSync); kind < kFaultKinds; ++kind)
    own_random_.emplace(static_cast<Fault>(kind), Random(seed ^ (kOwnNumbers * kind)));
  for (size_t kind = 0; kind < kFaultKinds; ++kind) {
    moods_[kind] = static_cast<Mood>(RandomOf(static_cast<Fault>(kind)).Between(0, 3));
  }
}

// Unwinds whatever still runs, to free its resources.
Simulation::~Simulation() {
  for (const auto& process : processes_) End(*process);
}

void Simulation::AddProcess(std::string name, Main main) {
  auto process = std::make_unique<Process>();
  process->name = std::move(name);
  process->main = std::move(main);
  process->env = std::make_unique<ProcessEnv>(*this, *process);
  NewThread(*process);
  Process& added = *process;
  processes_.push_back(std::move(process));
  After(random_.UpTo<int64_t, std::nano>(std::chrono::seconds(5)),
        [this, &added] { Start(added); });
}

void Simulation::Run() {
  while (!events_.empty() && !violation_) {
    const Event event = Pop();
    if (event.wakes != nullptr && (!event.wakes->alive || event.wakes->ticket != event.ticket))
      continue;
    now_ = std::max(now_, event.time);
    if (now_ > kTimeLimit) {
      Violate("V", "not everything has ended after " +
                       std::to_string(std::chrono::floor<std::chrono::hours>(now_).count()) +
                       " hours");
      break;
    }
    if (event.wakes == nullptr) {
      event.acts();
    } else {
      Wake(event);
    }
  }
}

void Simulation::Wake(const Event& event) {
  Thread& thread = *event.wakes;
  Process& process = thread.process;
  nanoseconds time = std::max(now_, process.stands_still_until);
  if (thread.sleeps) {
    time = std::max(time, event.time + process.suspended - thread.suspended);
    thread.suspended = process.suspended;
  }
  if (time > now_) return Push({time, random_.Next(), &thread, event.ticket, {}});
  PassBatonTo(thread);
  // One of its threads has crashed, and with it the process.
  if (process.unwinding) End(process);
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
  process.doomed = false;
  process.unwinding = false;
  process.stands_still_until = now_;
  process.clock_skew = std::chrono::hours(0);
  if (Fires(Fault::kClockSkew, 4)) {
    process.clock_skew = random_.OneIn(2) ? kClockSkew : -kClockSkew;
  }
  Thread& thread = process.first();
  thread.alive = true;
  ++thread.ticket;
  thread.fiber.Start([this, &process] { RunProcess(process); });
  PassBatonTo(thread);
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
  process.first().alive = false;
  Ended(process, crashed);
}

void Simulation::Ended(Process& process, bool crashed) {
  if (!crashed && !process.stop.stop_requested()) return;
  After(random_.UpTo(kLongestDowntime), [this, &process] { Start(process); });
}

Simulation::Thread& Simulation::NewThread(Process& process) {
  for (const auto& thread : process.threads) {
    if (!thread->alive) return *thread;
  }
  const std::string number = std::to_string(process.threads.size());
  return *process.threads.emplace_back(new Thread{
      .process = process, .name = process.name + (process.threads.empty() ? "" : "." + number)});
}

// Threads started by a thread. If that thread ends first, through a crash, they end with it: they
// may use its locals.
class Simulation::Joining {
 public:
  explicit Joining(Simulation& sim) : sim_(sim), caller_(*sim.current_) {}
  ~Joining() {
    if (!running_.empty()) caller_.process.doomed = true;
    while (!running_.empty()) sim_.PassBatonTo(*running_.back());
  }
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;

  void Start(std::function<void()> work) {
    Thread& thread = NewThread(caller_.process);
    running_.push_back(&thread);
    thread.alive = true;
    ++thread.ticket;
    thread.fiber.Start([this, &thread, work = std::move(work)] { Run(thread, work); });
    sim_.WakeAfter(thread, nanoseconds(0));
  }

  void Join() {
    waits_ = true;
    if (caller_.process.unwinding) throw ProcessCrash{};
    while (!running_.empty()) sim_.DropBaton(caller_, std::nullopt);
  }

 private:
  void Run(Thread& thread, const std::function<void()>& work) {
    try {
      if (!thread.process.doomed) work();
    } catch (const ProcessCrash&) {
    }
    thread.alive = false;
    std::erase(running_, &thread);
    if (running_.empty() && waits_) sim_.WakeAfter(caller_, nanoseconds(0));
  }

  Simulation& sim_;
  Thread& caller_;
  std::vector<Thread*> running_;
  bool waits_ = false;
};

void Simulation::RunAll(Process& process, std::vector<std::function<void()>> works) {
  if (works.empty() || process.unwinding) return;
  Joining joining(*this);
  for (size_t i = 1; i < works.size(); ++i) joining.Start(std::move(works[i]));
  works.front()();
  joining.Join();
}

// Runs the thread until it waits or ends.
void Simulation::PassBatonTo(Thread& thread) {
  Thread* const before = std::exchange(current_, &thread);
  thread.fiber.Resume();
  current_ = before;
}

// Its first thread takes the others with it.
void Simulation::End(Process& process) {
  if (!process.first().alive) return;
  process.doomed = true;
  PassBatonTo(process.first());
}

void Simulation::WakeAfter(Thread& thread, nanoseconds delay) {
  Push({now_ + delay, random_.Next(), &thread, thread.ticket, {}});
}

void Simulation::Pass(nanoseconds duration) {
  if (current_->process.unwinding) return;
  FaultPoint();
  DropBaton(*current_, duration);
}

// Without a duration, until woken.
void Simulation::DropBaton(Thread& thread, std::optional<nanoseconds> duration) {
  ++thread.ticket;
  thread.suspended = thread.process.suspended;
  if (duration) WakeAfter(thread, *duration);
  thread.fiber.Yield();
  thread.sleeps = false;
  if (thread.process.doomed) {
    thread.process.unwinding = true;
    throw ProcessCrash{};
  }
}

bool Simulation::Sleep(nanoseconds duration, const std::stop_token& stop) {
  Thread& thread = *current_;
  FaultPoint();
  if (thread.process.unwinding || stop.stop_requested()) return false;
  const nanoseconds end = now_ + duration;
  const std::stop_callback wake(stop, [this, &thread] {
    thread.sleeps = false;
    WakeAfter(thread, nanoseconds(0));
  });
  thread.sleeps = true;
  DropBaton(thread, duration);
  return now_ >= end && !stop.stop_requested();
}

bool Simulation::Unwinding() const { return current_ != nullptr && current_->process.unwinding; }

nanoseconds Simulation::RunsSince() const { return current_->process.stands_still_until; }

std::string_view Simulation::CurrentName() const {
  return current_ != nullptr ? std::string_view(current_->process.name) : "world";
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
  const std::string_view parts[] = {
      kBlanks.substr(std::min(kBlanks.size(), time.size())),
      time,
      " us  ",
      current_ != nullptr ? std::string_view(current_->name) : "world",
      "  ",
      text};
  for (const std::string_view part : parts) trace_hash_ = HashOn(trace_hash_, part);
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
