#include "pipeline/snapshot/snapshot_parts.h"

#include <algorithm>

#include "net/opensearch.h"
#include "pipeline/flow/left_out.h"
#include "pipeline/snapshot/snapshot_metadata.h"

namespace muster::pipeline {

using lucene::Repository;
using lucene::Snapshot;
using lucene::SnapshotState;

std::string WhyLeftOut(const lucene::SnapshotIndex& index, bool named) {
  if (index.HasMeta(net::kOpenSearchStoreMark)) return kLeftOutAsStore;
  if (named) return "";
  if (index.name.starts_with('.')) return kLeftOutForDot;
  return index.IsHidden() ? kLeftOutIfHidden : "";
}

bool HasTypeField(const lucene::SnapshotIndex& index, const SnapshotChoice& choice) {
  return !choice.type_field.empty() && TypesOf(index).size() > 1;
}

Status CheckReadable(const std::string& place, const lucene::SnapshotIndex& index,
                     const SnapshotChoice& choice) {
  const std::string which = place + ": index " + index.name;
  if (!index.refusal.empty()) {
    return Error{Code::kIncompatible, which + ": " + index.refusal,
                 "leave it out with --exclude, and read it from a running cluster instead"};
  }
  const std::vector<std::string> types = TypesOf(index);
  if (HasTypeField(index, choice)) {
    const std::string type = TypeWithField(index, choice.type_field);
    if (type.empty()) return {};
    return Error{Code::kIncompatible,
                 which + ": type " + type + " has a field '" + choice.type_field + "' already",
                 "choose another name with type_field=NAME"};
  }
  const bool is_there = choice.type.empty()
                            ? types.size() < 2
                            : std::find(types.begin(), types.end(), choice.type) != types.end();
  if (is_there) return {};
  std::string all;
  for (const std::string& type : types) all += (all.empty() ? "" : ", ") + type;
  return Error{Code::kIncompatible, which + " has documents of the types " + all,
               "documents of two types may have the same id: choose one type with type=NAME, each "
               "with a target of its own, or put the type into a field and before the id with "
               "type_field=NAME"};
}

namespace {

// Some of them, so that an index of a thousand fields does not fill the terminal.
std::string Listed(const std::vector<std::string>& problems) {
  constexpr size_t kShown = 10;
  std::string list;
  for (size_t i = 0; i < std::min(kShown, problems.size()); ++i) {
    list += (i > 0 ? ", " : "") + problems[i];
  }
  if (problems.size() <= kShown) return list;
  return list + " and " + std::to_string(problems.size() - kShown) + " more";
}

}  // namespace

Status CheckWhole(const std::string& place, const lucene::SnapshotIndex& index,
                  const SnapshotChoice& choice) {
  const KeptSource kept = KeptSourceOf(index);
  if (kept == KeptSource::kAll) return {};
  const std::string which = place + ": index " + index.name;
  if (choice.rebuild_source) {
    const std::vector<std::string> problems = PlanRebuild(index).problems;
    if (problems.empty()) return {};
    return Error{
        Code::kIncompatible,
        which + ": its documents cannot be rebuilt exactly, because of " + Listed(problems),
        "leave it out with --exclude " + index.name + ", or read it without rebuild_source=true"};
  }
  const bool has_less = kept == KeptSource::kPruned;
  if (choice.recovery_source || (has_less && choice.pruned_source)) return {};
  return Error{
      Code::kIncompatible,
      which + (has_less ? ": its mapping leaves fields out of _source"
                        : ": its mapping keeps no _source"),
      std::string("recovery_source=true uses the copies that are kept for recovery, of the latest "
                  "documents; rebuild_source=true rebuilds documents from the values of their "
                  "fields, if its mapping allows it; ") +
          (has_less ? "pruned_source=true takes them as they are; " : "") +
          "or leave it out with --exclude " + index.name};
}

std::shared_ptr<const RebuildPlan> RebuildOf(const lucene::SnapshotIndex& index,
                                             const SnapshotChoice& choice) {
  if (!choice.rebuild_source || KeptSourceOf(index) == KeptSource::kAll) return nullptr;
  auto plan = std::make_shared<RebuildPlan>(PlanRebuild(index));
  if (!plan->problems.empty()) return nullptr;
  return plan;
}

Result<Snapshot> ChooseSnapshot(const Repository& repository, const std::string& wanted) {
  if (!wanted.empty()) {
    MUSTER_ASSIGN(Snapshot snapshot, repository.ReadSnapshot(wanted));
    if (snapshot.state == SnapshotState::kSuccess || snapshot.state == SnapshotState::kPartial) {
      return snapshot;
    }
    return Error{Code::kIncompatible,
                 repository.name() + ": snapshot " + wanted + " is not complete",
                 "list complete snapshots with 'muster snapshot list'"};
  }
  MUSTER_ASSIGN(const std::vector<Snapshot> oldest_first, repository.ReadSnapshots());
  const auto newest = std::find_if(
      oldest_first.rbegin(), oldest_first.rend(),
      [](const Snapshot& snapshot) { return snapshot.state == SnapshotState::kSuccess; });
  if (newest != oldest_first.rend()) return *newest;
  return Error{Code::kNotFound, repository.name() + ": has no complete snapshot",
               "take one, or name a partial one with snapshot=NAME"};
}

Result<std::optional<Snapshot>> ChooseSince(const Repository& repository, const std::string& name,
                                            const Snapshot& snapshot) {
  if (name.empty()) return std::nullopt;
  MUSTER_ASSIGN(Snapshot since, ChooseSnapshot(repository, name));
  // Documents carry the time of their snapshot as a version. A server's clock has a resolution of
  // about 200 ms, so that two snapshots may have the same: a delta's deletes would lose to the
  // earlier one's writes.
  if (since.uuid != snapshot.uuid && since.start_ms == snapshot.start_ms && since.start_ms > 0) {
    return Error{Code::kIncompatible,
                 repository.name() + ": snapshots " + name + " and " + snapshot.name +
                     " were taken at the same time",
                 "take another one, and migrate the changes up to that"};
  }
  if (since.uuid == snapshot.uuid || since.start_ms <= 0 || since.start_ms > snapshot.start_ms) {
    return Error{Code::kInvalid,
                 repository.name() + ": snapshot " + name + " is not older than " + snapshot.name,
                 "since=NAME is the snapshot that was migrated before"};
  }
  return since;
}

}  // namespace muster::pipeline
