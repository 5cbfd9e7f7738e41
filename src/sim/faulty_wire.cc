#include "sim/faulty_wire.h"

namespace muster::sim {
namespace {

constexpr nanoseconds kLatency = std::chrono::milliseconds(5);
constexpr nanoseconds kCallTimeout = std::chrono::seconds(5);
constexpr nanoseconds kLongestDelay = std::chrono::seconds(90);
constexpr nanoseconds kLongestOutage = std::chrono::seconds(60);
constexpr nanoseconds kLongestHarshOutage = std::chrono::minutes(4);

}  // namespace

Status FaultyWire::Carry(const std::string& what, bool writes,
                         const std::function<void(bool late)>& apply) {
  const Error refused{Code::kUnavailable, "connection refused"};
  // Who only wanted to read has lost nothing by not knowing whether the request arrived.
  const Error silence{writes ? Code::kUnknownOutcome : Code::kUnavailable, "no reply in time"};
  sim_.Pass(sim_.random().UpTo(kLatency));
  if (sim_.Unwinding()) return refused;
  if (sim_.Fires(Fault::kOutage, harsh_ ? 100 : 1500)) {
    const nanoseconds outage = sim_.random().UpTo(harsh_ ? kLongestHarshOutage : kLongestOutage);
    away_until_ = sim_.now() + outage;
  }
  const bool cut_off =
      sim_.Allows(Fault::kOutage) && !cut_off_.empty() && sim_.CurrentName() == cut_off_;
  if (Away() || cut_off) {
    ++refused_;
    sim_.Note(what + ": refused");
    return refused;
  }
  if (sim_.Fires(Fault::kLostRequest, 150)) {
    sim_.Note(what + ": lost on the way");
    sim_.Pass(kCallTimeout);
    return silence;
  }
  if (writes && sim_.Fires(Fault::kDelayedWrite, 100)) {
    sim_.Note(what + ": held up on the way");
    sim_.After(sim_.random().UpTo(kLongestDelay), [apply] { apply(true); });
    sim_.Pass(kCallTimeout);
    return silence;
  }
  sim_.Note(what);
  apply(false);
  if (writes && sim_.Fires(Fault::kDuplicate, 150)) {
    sim_.After(sim_.random().UpTo(kLongestDelay), [apply] { apply(true); });
  }
  if (sim_.Fires(Fault::kLostReply, 100)) {
    sim_.Note(what + ": its reply is lost");
    sim_.Pass(kCallTimeout);
    return silence;
  }
  sim_.Pass(sim_.random().UpTo(kLatency));
  return {};
}

}  // namespace muster::sim
