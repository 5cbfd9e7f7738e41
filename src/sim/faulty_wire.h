#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "muster/result.h"
#include "sim/simulation.h"

namespace muster::sim {

// Rarely makes the current thread wait for an unresponsive service, for minutes or until stopped;
// half of the time it ignores the stop, too.
void MaybeHang(Simulation& sim, const std::stop_token& stop);

// The connection between a process and a server: requests and replies take time and are lost, late
// or duplicated, and the server may be unreachable.
class FaultyWire {
 public:
  explicit FaultyWire(Simulation& sim) : sim_(sim) {}

  // Carries a request to the server: `apply` runs there once, twice, later or never. `late`: it
  // runs after the sender got its answer.
  template <class T, class Apply>
  Result<T> Call(std::string_view what, bool writes, Apply apply) {
    std::optional<Result<T>> answer;
    const auto now = [&answer, &apply] { answer = apply(/*late=*/false); };
    // A late request must not refer to anything of the sender's.
    const auto later = [&apply] { return [apply] { static_cast<void>(apply(/*late=*/true)); }; };
    const Status sent = Carry(what, writes, now, later);
    if (!sent) return sent.error();
    return *std::move(answer);
  }

  // Makes the server unreachable more often, and for minutes.
  void AddHarshFaults() { harsh_ = true; }

  // Makes the server unreachable for this long, as during a restore.
  void GoAway(nanoseconds time);

  // One process never reaches it, as long as there are faults.
  void CutOff(std::string process) { cut_off_ = std::move(process); }

  int64_t refused() const { return refused_; }

  bool Away() const { return sim_.faults_on() && sim_.now() < away_until_; }

 private:
  Status Carry(std::string_view what, bool writes, const std::function<void()>& now,
               const std::function<std::function<void()>()>& later);

  Simulation& sim_;
  nanoseconds away_until_{0};
  bool harsh_ = false;
  std::string cut_off_;
  int64_t refused_ = 0;
};

}  // namespace muster::sim
