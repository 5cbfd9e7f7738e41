#include "sim/faulty_wire.h"

namespace muster::sim {
namespace {

constexpr nanoseconds kLatency = std::chrono::milliseconds(5);
constexpr nanoseconds kCallTimeout = std::chrono::seconds(5);
constexpr nanoseconds kLongestDelay = std::chrono::seconds(90);
constexpr nanoseconds kLongestOutage = std::chrono::seconds(60);
constexpr nanoseconds kLongestHarshOutage = std::chrono::minutes(4);

constexpr nanoseconds kLongestHang = std::chrono::minutes(4);

Error Refused() { return {Code::kUnavailable, "connection refused"}; }

}  // namespace

void MaybeHang(Simulation& sim, const std::stop_token& stop) {
  if (!sim.Fires(Fault::kHang, 100)) return;
  const nanoseconds time = sim.random().UpTo(kLongestHang);
  const bool deaf = sim.random().OneIn(2);
  sim.Note("hangs for " + std::to_string(std::chrono::floor<milliseconds>(time).count()) +
           (deaf ? " ms, and cannot be stopped" : " ms"));
  sim.Sometimes("a call hangs");
  if (deaf) sim.Lasts(time);
  if (sim.Fires(Fault::kTerminate, 3)) sim.AskToStop(sim.random().UpTo(time));
  if (sim.Fires(Fault::kSuspend, 3)) sim.SuspendLater(sim.random().UpTo(time));
  if (deaf) {
    sim.Pass(time);
    sim.Lasts(nanoseconds(0));  // a pause of the process has prolonged it
  } else {
    sim.Sleep(time, stop);
  }
}

void FaultyWire::GoAway(nanoseconds time) {
  away_until_ = std::max(away_until_, sim_.now() + time);
  sim_.Lasts(time);
}

Status FaultyWire::Carry(std::string_view what, bool writes, const std::function<void()>& now,
                         const std::function<std::function<void()>()>& later) {
  const auto note = [&](std::string_view outcome) { sim_.Note(std::string(what).append(outcome)); };
  const auto silence = [&] {
    sim_.Lasts(kCallTimeout);
    sim_.Pass(kCallTimeout);
    // For a read, an unknown outcome does no harm.
    return Error{writes ? Code::kUnknownOutcome : Code::kUnavailable, "no reply in time"};
  };
  const auto arrives_later = [&] {
    const nanoseconds delay = sim_.random().UpTo(kLongestDelay);
    sim_.Lasts(delay);
    sim_.After(delay, later());
  };
  sim_.Pass(sim_.random().UpTo(kLatency));
  if (sim_.Unwinding()) return Refused();
  if (sim_.Fires(Fault::kOutage, harsh_ ? 100 : 1500)) {
    const nanoseconds outage = sim_.random().UpTo(harsh_ ? kLongestHarshOutage : kLongestOutage);
    away_until_ = sim_.now() + outage;
    sim_.Lasts(outage);
  }
  const bool cut_off =
      sim_.Allows(Fault::kOutage) && !cut_off_.empty() && sim_.CurrentName() == cut_off_;
  if (Away() || cut_off) {
    ++refused_;
    sim_.Lasts(nanoseconds(0));
    note(": refused");
    return Refused();
  }
  if (sim_.Fires(Fault::kLostRequest, 150)) {
    note(": lost on the way");
    return silence();
  }
  if (writes && sim_.Fires(Fault::kDelayedWrite, 100)) {
    note(": held up on the way");
    arrives_later();
    return silence();
  }
  sim_.Note(what);
  now();
  if (writes && sim_.Fires(Fault::kDuplicate, 150)) {
    arrives_later();
  }
  if (sim_.Fires(Fault::kLostReply, 100)) {
    note(": its reply is lost");
    return silence();
  }
  sim_.Pass(sim_.random().UpTo(kLatency));
  return {};
}

}  // namespace muster::sim
