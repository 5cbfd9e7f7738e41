#include "sim/plan_drivers.h"

#include <algorithm>

#include "core/json_fields.h"
#include "muster/store.h"

namespace muster::sim {
namespace {

using std::chrono::seconds;

// A driver looks for requests twice a second, and renews its lease three times per lease.
constexpr nanoseconds kHearsOfDrain = seconds(5);
constexpr nanoseconds kHearsOfLoss = 2 * plan::kRunLease / 3;

}  // namespace

void PlanDrivers::Sends(const store::Change& change) {
  if (change.record.kind == plan::kRunKind && change.record.version == 0)
    known_as_.insert_or_assign(std::string(sim_.CurrentName()),
                               store::NameOfOwner(change.record.owner));
}

void PlanDrivers::Changed(const store::Change& change, const std::optional<store::Record>& before,
                          const std::optional<store::Record>& after) {
  // A conflict changes nothing.
  if (!after || before == after) return;
  if (change.record.kind == plan::kRunKind && change.record.key == migration_) {
    // Renewed for a whole lease, or given back.
    released_ = change.due.delay < plan::kRunLease;
    leased_at_ = sim_.now();
    owner_ = store::NameOfOwner(after->owner);
    if (!before) {
      claimers_.insert(owner_);
      claimed_at_ = sim_.now();
    }
  }
  if (change.record.kind == "plan.wish") {
    const Json request = Json::parse(after->body);
    const bool drains = TextIn(request, "cancel") == "drain";
    if (!drains || TextIn(request, "execution") != drained_) drained_at_.reset();
    if (drains && !drained_at_) drained_at_ = sim_.now();
    drained_ = TextIn(request, "execution");
  }
}

void PlanDrivers::Claimed(const store::ClaimRequest& request,
                          const std::vector<store::Record>& before,
                          const std::vector<store::Record>& taken) {
  if (request.kind != plan::kRunKind) return;
  // Processes are identified by name: the rest of an owner is new for every claim.
  const std::string claimer = store::NameOfOwner(request.owner);
  known_as_.insert_or_assign(std::string(sim_.CurrentName()), claimer);
  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i].key != migration_) continue;
    if (store::NameOfOwner(before[i].owner) != claimer) CheckTaken(before[i]);
    claimers_.insert(claimer);
    owner_ = claimer;
    claimed_at_ = leased_at_ = sim_.now();
    released_ = false;
  }
}

bool PlanDrivers::IsOwner(const std::string& process) const {
  const auto known = known_as_.find(process);
  return known != known_as_.end() && known->second == owner_;
}

bool PlanDrivers::HadTimeSince(nanoseconds since, nanoseconds time) const {
  return sim_.now() > std::max({since, sim_.RunsSince(), sim_.calm_since()}) + time;
}

// Without faults, a run stays with the process that drives it.
void PlanDrivers::CheckTaken(const store::Record& before) {
  if (released_ || !Calm()) return;
  for (const std::string& name : driving_) {
    const auto known = known_as_.find(name);
    if (known != known_as_.end() && known->second == store::NameOfOwner(before.owner))
      sim_.Violate("R", "the run was taken from " + name + ", which drives it");
  }
}

PlanDrivers::Driving::Driving(PlanDrivers& drivers)
    : drivers_(drivers), name_(drivers.sim_.CurrentName()) {
  const auto known = drivers.known_as_.find(name_);
  if (known == drivers.known_as_.end() || !drivers.claimers_.contains(known->second))
    drivers.sim_.Violate("R", name_ + " drives a run that it has not claimed");
  if (drivers.driving_.empty()) drivers.driven_changed_ = drivers.sim_.now();
  drivers.driving_.insert(name_);
}

PlanDrivers::Driving::~Driving() {
  drivers_.driving_.erase(name_);
  if (drivers_.driving_.empty()) drivers_.driven_changed_ = drivers_.sim_.now();
}

void PlanDrivers::CheckCall(const states::TaskCall& call) {
  CheckLease(call);
  CheckDrain(call);
}

// A process must have stopped once it has had time to notice that it lost the run.
void PlanDrivers::CheckLease(const states::TaskCall& call) {
  const std::string name(sim_.CurrentName());
  if (!driving_.contains(name) || IsOwner(name)) return;
  if (HadTimeSince(claimed_at_, kHearsOfLoss))
    sim_.Violate("R", name + " makes the call " + call.token + " of a run that it has lost");
}

// No task may begin once the driver has had time to notice the drain request.
void PlanDrivers::CheckDrain(const states::TaskCall& call) {
  // A late request may name an earlier attempt.
  if (!drained_at_ || call.execution != drained_ || !call.part || !call.part->does_task) return;
  if (Calm() && HadTimeSince(*drained_at_, kHearsOfDrain))
    sim_.Violate("R", call.token + " was begun though its run is to be drained");
}

void PlanDrivers::CheckReported(const plan::RunState& run, nanoseconds asked) {
  if (run.status != RunStatus::kInProgress || !Calm()) return;
  // A process that has just claimed the run is about to drive it.
  if (std::max(driven_changed_, claimed_at_) + plan::kRunLease + kHearsOfDrain >= asked) return;
  // A clock that was set back prolongs a lease, but not one that was given back.
  const bool prolonged =
      sim_.HasFired(Fault::kClockJump) && !released_ && leased_at_ <= sim_.calm_since();
  if (driving_.empty() && draining_ == 0 && run.driven && !prolonged)
    sim_.Violate("R", "a run that no process drives is reported as driven");
  const bool by_owner = std::ranges::any_of(
      driving_, [this](const std::string& process) { return IsOwner(process); });
  if (by_owner && !run.driven)
    sim_.Violate("R", "a run that a process drives is reported as not driven");
  sim_.Sometimes(run.driven ? "a run is reported as driven" : "a run is reported as not driven");
}

}  // namespace muster::sim
