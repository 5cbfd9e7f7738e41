#include "replica/rebuild.h"

#include <algorithm>
#include <map>

#include "replica/operations.h"

namespace muster {
namespace {

constexpr milliseconds kLook{200};
constexpr milliseconds kSwapPatience{60'000};

Error Stopped() { return {Code::kCancelled, "asked to stop", "the rebuild goes on; call again"}; }

}  // namespace

Result<int> Rebuild::Begin() {
  int version = 0;
  MUSTER_TRY(ChangeDesired(store_, set_, projection_.name(), [&](DesiredState& desired) -> Status {
    if (desired.versions.size() > 1) {
      version = *std::max_element(desired.versions.begin(), desired.versions.end());
      return {};
    }
    version = desired.active + 1;
    desired.versions.push_back(version);
    return {};
  }));
  return version;
}

// The version that is not active.
Result<int> Rebuild::Other() const {
  MUSTER_ASSIGN(const DesiredState desired, DesiredFor(store_, set_, projection_.name()));
  for (const int version : desired.versions) {
    if (version != desired.active) return version;
  }
  return Error{Code::kNotFound,
               "projection '" + projection_.name() + "' has no version besides the active one",
               "begin with 'muster replica rebuild'"};
}

Status Rebuild::CatchUp(int64_t lag, const std::function<void(int64_t left)>& progress,
                        std::stop_token stop) {
  MUSTER_ASSIGN(const int version, Other());
  for (;;) {
    MUSTER_ASSIGN(const auto slots, model_.Slots({set_, projection_.name(), version}));
    std::map<int, int64_t> positions;
    for (const SlotState& slot : slots) positions[slot.slot] = slot.position;
    std::vector<SlotPosition> from;
    for (int slot = 0; slot < log_.slots(); ++slot) from.push_back({slot, positions[slot]});
    MUSTER_ASSIGN(const auto lags, log_.Lag(from));
    int64_t left = 0;
    for (const SlotLag& slot : lags) left += slot.events;
    if (progress) progress(left);
    // Slots appear when a worker takes them over: before, nothing is being done.
    if (left <= lag && slots.size() == static_cast<size_t>(log_.slots())) return {};
    if (!env_.Sleep(kLook, stop)) return Stopped();
  }
}

Status Rebuild::Hold(int version, bool held) {
  return ChangeDesired(store_, set_, projection_.name(), [&](DesiredState& desired) -> Status {
    std::erase(desired.held, version);
    if (held) desired.held.push_back(version);
    return {};
  });
}

Status Rebuild::Swap(bool back, std::stop_token stop) {
  MUSTER_ASSIGN(const DesiredState desired, DesiredFor(store_, set_, projection_.name()));
  MUSTER_ASSIGN(const int other, Other());
  if (back != (other < desired.active)) {
    return Error{Code::kConflict, "version " + std::to_string(desired.active) + " of '" +
                                      projection_.name() + "' is active already"};
  }
  MUSTER_TRY(Hold(desired.active, true));
  Status swapped = SwapHeld(desired.active, other, std::move(stop));
  // Whatever came of it, nothing is to stand still for ever.
  Status released = Hold(desired.active, false);
  if (!swapped) return swapped;
  return released;
}

Status Rebuild::SwapHeld(int from, int to, std::stop_token stop) {
  const MonoTime give_up = env_.MonoNow() + kSwapPatience;
  const auto behind = [&]() -> Result<bool> {
    MUSTER_ASSIGN(const auto old_slots, model_.Slots({set_, projection_.name(), from}));
    MUSTER_ASSIGN(const auto new_slots, model_.Slots({set_, projection_.name(), to}));
    std::map<int, int64_t> positions;
    for (const SlotState& slot : new_slots) positions[slot.slot] = slot.position;
    return std::any_of(old_slots.begin(), old_slots.end(),
                       [&](const SlotState& slot) { return slot.position > positions[slot.slot]; });
  };
  for (;;) {
    MUSTER_ASSIGN(const bool waits, behind());
    if (!waits) break;
    if (env_.MonoNow() >= give_up) {
      return Error{Code::kUnavailable,
                   "version " + std::to_string(to) + " of '" + projection_.name() +
                       "' does not catch up with version " + std::to_string(from),
                   "is the set running? 'muster replica status' shows how far it is"};
    }
    if (!env_.Sleep(kLook, stop)) return Stopped();
  }
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  MUSTER_TRY(projection_.Activate(*transaction, to));
  MUSTER_TRY(model_.Commit(*transaction));
  // Readers see the new version from here on. Workers hear of it now, and switch side effects on.
  return ChangeDesired(store_, set_, projection_.name(), [&](DesiredState& desired) -> Status {
    desired.active = to;
    return {};
  });
}

Result<int> Rebuild::Finish() {
  MUSTER_ASSIGN(const int other, Other());
  MUSTER_TRY(ChangeDesired(store_, set_, projection_.name(), [&](DesiredState& desired) -> Status {
    std::erase(desired.versions, other);
    std::erase(desired.held, other);
    return {};
  }));
  // A worker that has not heard of it yet fails to commit, and then hears.
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  MUSTER_TRY(model_.Forget(*transaction, {set_, projection_.name(), other}));
  MUSTER_TRY(projection_.Drop(*transaction, other));
  MUSTER_TRY(model_.Commit(*transaction));
  return other;
}

}  // namespace muster
