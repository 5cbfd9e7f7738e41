#include <algorithm>

#include "sim/simulation_process.h"

namespace muster::sim {
namespace {

constexpr nanoseconds kLongestPause = std::chrono::seconds(90);
constexpr nanoseconds kLongestSuspension = std::chrono::minutes(3);
constexpr nanoseconds kLongestGrace = std::chrono::milliseconds(500);

constexpr std::string_view kFaultNames[kFaultKinds] = {
    "crash",       "pause",        "terminate",  "clock-skew", "lost-request", "delayed-write",
    "duplicate",   "lost-reply",   "outage",     "read-only",  "clock-jump",   "torn-write",
    "throttle",    "stale-read",   "go-back",    "power-loss", "suspend",      "hang",
    "failed-sync", "restored-log", "late-commit"};

}  // namespace

std::string_view FaultName(Fault fault) { return kFaultNames[static_cast<size_t>(fault)]; }

bool Simulation::Fires(Fault fault, uint64_t odds) {
  const Mood mood = moods_[static_cast<size_t>(fault)];
  if (mood == Mood::kOften) odds = std::max<uint64_t>(2, odds / 4);
  if (mood == Mood::kSeldom) odds *= 4;
  // The number is always drawn, so that a disallowed fault does not shift the others.
  const bool drawn = RandomOf(fault).OneIn(odds) && mood != Mood::kNever;
  if (!drawn || !faults_on() || !plan_.allowed[static_cast<size_t>(fault)]) return false;
  ++faults_fired_;
  fired_[static_cast<size_t>(fault)] = true;
  if (fault != Fault::kTerminate) Lasts(nanoseconds(0));
  Note("fault: " + std::string(FaultName(fault)));
  return true;
}

void Simulation::FaultPoint() {
  Thread& thread = *current_;
  Process& process = thread.process;
  if (process.unwinding) return;
  if (++calls_ == plan_.crash_at) Crash("planned");
  if (Fires(Fault::kCrash, 400)) Crash("fault");
  if (Fires(Fault::kTerminate, 250)) AskToStop(random_.UpTo(kLongestGrace));
  if (Fires(Fault::kPause, 300)) {
    const nanoseconds pause = random_.UpTo(kLongestPause);
    Note("pauses for " + std::to_string(std::chrono::floor<milliseconds>(pause).count()) + " ms");
    Freeze(process, pause);
    DropBaton(thread, pause);
  }
  if (Fires(Fault::kSuspend, 600)) DropBaton(thread, Suspend(process));
}

void Simulation::Freeze(Process& process, nanoseconds duration) {
  process.stands_still_until = now_ + duration;
  Lasts(duration);
}

// Returns for how long.
nanoseconds Simulation::Suspend(Process& process) {
  const nanoseconds time = added_random_.UpTo(kLongestSuspension);
  Note(process.name + " is suspended for " +
       std::to_string(std::chrono::floor<milliseconds>(time).count()) + " ms");
  Sometimes("a machine is suspended");
  process.suspended += time;
  Freeze(process, time);
  return time;
}

void Simulation::SuspendLater(nanoseconds delay) {
  After(delay, [this, &process = current_->process] {
    if (process.first().alive && process.stands_still_until <= now_) Suspend(process);
  });
}

void Simulation::AskToStop(nanoseconds delay) {
  After(delay, [this, &process = current_->process] { Terminate(process); });
}

void Simulation::Terminate(Process& process) {
  if (!process.first().alive || process.stop.stop_requested()) return;
  Note(process.name + " is asked to stop");
  process.stop.request_stop();
}

void Simulation::Crash(std::string_view why) {
  Note("crashes: " + std::string(why));
  Lasts(nanoseconds(0));
  ++crashes_;
  current_->process.doomed = true;
  current_->process.unwinding = true;
  throw ProcessCrash{};
}

void Simulation::CutPower() {
  Note("the power fails");
  for (const auto& process : processes_) End(*process);
}

}  // namespace muster::sim
