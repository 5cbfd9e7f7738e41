// Driving a run: its lease, its threads, and what the driver publishes.

#include <algorithm>
#include <atomic>

#include "core/guard.h"
#include "core/log.h"
#include "core/planted_bug.h"
#include "muster/store.h"
#include "plan/run/run_body.h"
#include "plan/run/runs.h"
#include "plan/run/side_records.h"

namespace muster::plan {
namespace {

constexpr milliseconds kLookEvery{500};
constexpr milliseconds kRenewEvery = kRunLease / 3;

Error LostTo(const store::Record& record) {
  return {Code::kLeaseLost,
          "another process has taken over migration '" + record.key + "'; this one has stopped",
          "'muster status " + record.key + "' shows its progress"};
}

}  // namespace

Result<std::optional<store::Record>> Runs::Claim(const std::string& id, std::stop_token stop) {
  const store::LeaseRequest request{.kind = kRunKind,
                                    .queue = kRunQueue,
                                    .key = id,
                                    .owner = owner_,
                                    .terms = {.lease = kRunLease, .max_lease = kRunLease}};
  MUSTER_ASSIGN(const auto claimed, store::Lease::Claim(store_, request, env_, std::move(stop)));
  if (claimed.empty()) return std::nullopt;
  return claimed.front().record();
}

bool Runs::Holds(const store::Record& record, int64_t epoch) const {
  return store::NameOfOwner(record.owner) == owner_ && record.epoch == epoch;
}

// Only the fence decides: a lease that ended while the store was unavailable is renewed unless
// another process has claimed the run since. A store::Lease would give up at its deadline, and the
// thread that drives a run need not be the one that claimed it.
Status Runs::SetDue(const RunState& run, store::Due due) {
  return store::Update(
      store_, kRunKind, run.id,
      [&](std::optional<store::Record> record) -> Result<std::optional<store::Change>> {
        if (!record) return NoSuchRun(run.id);
        if (!Holds(*record, run.epoch)) return LostTo(*record);
        return store::Change::Put(*std::move(record), due);
      });
}

Status Runs::Renew(const RunState& run) { return SetDue(run, store::Due::After(kRunLease)); }

// Best effort: the lease ends by itself.
void Runs::Release(const RunState& run) {
  const store::Due due = PLANTED_BUG(releases_go_by_the_clock) ? store::Due::After(milliseconds(1))
                                                               : store::Due::AtOnce();
  static_cast<void>(SetDue(run, due));
}

Status Runs::WhileRenewing(const RunState& run,
                           const std::function<Status(const std::stop_token& stop)>& work) {
  MUSTER_TRY(Renew(run));
  std::stop_source ended;
  std::stop_source lost;
  Status renewed;
  Status worked;
  env_.RunAll({[&] {
                 while (env_.Sleep(kRenewEvery, ended.get_token())) {
                   renewed = Renew(run);
                   if (renewed || IsTransient(renewed.error().code)) continue;
                   lost.request_stop();
                   return;
                 }
               },
               [&] {
                 worked = Guarded("run '" + run.id + "'", [&] { return work(lost.get_token()); });
                 ended.request_stop();
               }});
  return lost.stop_requested() ? renewed : worked;
}

// Before the first call, the gate needs the table of tasks and whether the run is draining.
Result<bool> Runs::PrepareGate(const RunState& run) {
  MUSTER_ASSIGN(const store::Record record, Read(run.id));
  MUSTER_ASSIGN(const auto plan, PlanIn(record));
  MUSTER_ASSIGN(StateTable states, ReadStatesOf(store_, run.execution, run.profile, plan.get()));
  gate_->Begin(std::move(states));
  MUSTER_ASSIGN(const bool draining, DrainRequested(store_, run));
  if (draining) {
    gate_->Close();
  } else {
    gate_->Open();
  }
  return draining;
}

Result<RunState> Runs::Drive(const RunState& run, int threads, std::stop_token stop) {
  MUSTER_TRY(Renew(run));
  bool draining = false;
  if (gate_ != nullptr) {
    MUSTER_ASSIGN(draining, PrepareGate(run));
    MUSTER_TRY(gate_->BeginRun(run.id));
  }
  Status driven = DriveHeld(run, threads, draining, stop);
  if (gate_ != nullptr) {
    Status ended = gate_->EndRun(run.id);
    if (driven) driven = std::move(ended);
  }
  MUSTER_TRY(driven);
  return Find(run.id);
}

Status Runs::DriveHeld(const RunState& run, int threads, bool draining,
                       const std::stop_token& stop) {
  const std::string name = "run '" + run.id + "'";
  std::vector<Status> ended(static_cast<size_t>(std::max(1, threads)));
  std::atomic<size_t> working = ended.size();
  std::stop_source done;
  std::stop_source halt;
  const std::stop_callback also(stop, [&] { halt.request_stop(); });
  Status attended;
  std::vector<std::function<void()>> all;
  all.emplace_back([&] {
    attended = Guarded(name, [&] { return Attend(run, draining, done.get_token()); });
    // Without a lease, and without the thread that renews it, nothing more may begin here.
    if (!attended) halt.request_stop();
  });
  for (Status& status : ended) {
    all.emplace_back([&] {
      status = Guarded(name, [&] { return states_.Work(run.execution, halt.get_token()); });
      if (--working == 0) done.request_stop();
    });
  }
  env_.RunAll(std::move(all));
  if (!attended) {
    Log(Level::kWarning, "a run is no longer driven here",
        {{"run", run.id}, {"error", attended.error().message}});
    return attended.error();
  }
  Release(run);
  for (const Status& status : ended) MUSTER_TRY(status);
  return {};
}

// `draining`: the gate is closed. A request stays in force for this driver even if its record
// disappears: a process that resumed the run and then lost it may delete the record late.
Status Runs::Attend(const RunState& run, bool draining, const std::stop_token& done) {
  MonoTime renew = env_.MonoNow() + kRenewEvery;
  LiveRun live;
  if (const auto now = store_.Now()) live.since = *now;
  static_cast<void>(PublishLive(store_, run, live));
  bool cancelled = false;
  while (env_.Sleep(kLookEvery, done)) {
    if (env_.MonoNow() >= renew && !PLANTED_BUG(runs_are_not_renewed)) {
      const MonoTime asked = env_.MonoNow();
      Status renewed = Renew(run);
      const bool lost = !renewed && !IsTransient(renewed.error().code);
      if (lost && !PLANTED_BUG(lost_runs_go_on)) return renewed;
      // A failed one is retried at the next look.
      if (renewed) renew = asked + kRenewEvery;
    }
    if (gate_ == nullptr) continue;
    auto rows = gate_->LiveRows();
    auto waits = gate_->LiveWaits();
    if (rows != live.rows || waits != live.waits) {
      live.rows = std::move(rows);
      live.waits = std::move(waits);
      static_cast<void>(PublishLive(store_, run, live));
    }
    // A failed read is repeated at the next look; the request stays in force.
    draining = draining || DrainRequested(store_, run).value_or(false);
    if (PLANTED_BUG(drains_are_ignored)) draining = false;
    if (!draining || cancelled) continue;
    gate_->Close();
    if (!IsDrained(run).value_or(false)) continue;
    // Stopping remote work may take longer than a lease.
    Status ended = WhileRenewing(run, [&](const std::stop_token& lost) {
      return EndCancelled(run, "by 'muster cancel --drain'", lost);
    });
    if (!ended && ended.error().code == Code::kLeaseLost) return ended;
    cancelled = ended.has_value();
  }
  return {};
}

Result<LiveRun> Runs::Live(const RunState& run) { return ReadLive(store_, run); }

}  // namespace muster::plan
