// The operations of muster/replica.h that need more than the store.

#include "muster/replica.h"
#include "replica/operations.h"
#include "replica/rebuild.h"

namespace muster::replica {
namespace {

// A swap holds the active version until the other has caught up: not before few are left.
constexpr int64_t kNearlyThere = 1'000;

Rebuild RebuildOf(const ReplicaSet& set, ReadModel& model, std::shared_ptr<Projection> projection) {
  return {set.store, set.events, model, set.env, set.name, std::move(projection)};
}

}  // namespace

Result<std::vector<ProjectionStatus>> ReadStatus(const ReplicaSet& set,
                                                 const std::vector<std::string>& projections) {
  MUSTER_ASSIGN(const auto model,
                OpenReadModel(set.read_model, set.env, {.usual = set.call_timeout}));
  MUSTER_ASSIGN(const SetStatus status,
                StatusOf(set.store, set.events, *model, set.name, projections));
  return std::vector<ProjectionStatus>(status.instances.begin(), status.instances.end());
}

Result<int> RebuildProjection(const ReplicaSet& set, std::shared_ptr<Projection> projection,
                              RebuildObserver& observer, std::stop_token stop) {
  MUSTER_ASSIGN(const auto model,
                OpenReadModel(set.read_model, set.env, {.usual = set.call_timeout}));
  Rebuild rebuild = RebuildOf(set, *model, std::move(projection));
  MUSTER_ASSIGN(const int version, rebuild.Begin());
  MUSTER_TRY(rebuild.CatchUp(kNearlyThere, observer, stop));
  MUSTER_TRY(rebuild.Swap(/*back=*/false, stop));
  return version;
}

Status RollBackRebuild(const ReplicaSet& set, std::shared_ptr<Projection> projection,
                       std::stop_token stop) {
  MUSTER_ASSIGN(const auto model,
                OpenReadModel(set.read_model, set.env, {.usual = set.call_timeout}));
  return RebuildOf(set, *model, std::move(projection)).Swap(/*back=*/true, std::move(stop));
}

Result<int> FinishRebuild(const ReplicaSet& set, std::shared_ptr<Projection> projection) {
  MUSTER_ASSIGN(const auto model,
                OpenReadModel(set.read_model, set.env, {.usual = set.call_timeout}));
  return RebuildOf(set, *model, std::move(projection)).Finish();
}

}  // namespace muster::replica
