#include "work/finish_collections.h"

#include <map>
#include <set>

#include "pipeline/pipeline.h"
#include "store/store.h"
#include "work/chosen_records.h"
#include "work/item_body.h"
#include "work/records.h"
#include "work/target_check.h"

namespace muster::work {
namespace {

// Documents read from these partitions, by their items and everything split off from them.
Result<int64_t> CountRead(WorkCoordinator& coordinator,
                          const std::vector<pipeline::Partition>& partitions) {
  int64_t read = 0;
  std::vector<pipeline::Partition> left = partitions;
  while (!left.empty()) {
    const std::string key = ItemKey(coordinator.run(), NameOf(left.back()));
    left.pop_back();
    MUSTER_ASSIGN(const std::optional<store::Record> record,
                  coordinator.store().Get(kWorkKind, key));
    if (!record) return Error{Code::kIncompatible, "item '" + key + "' is missing", kRestored};
    MUSTER_ASSIGN(const ItemBody item, ItemBody::FromJson(record->body));
    read += item.progress.counts.read;
    for (pipeline::Partition& part : item.Successors()) left.push_back(std::move(part));
  }
  return read;
}

// Compares what was read of the collections with the source's own count.
Status CheckCounts(WorkCoordinator& coordinator, pipeline::Source& source,
                   const std::set<std::string>& collections) {
  std::map<std::string, std::vector<pipeline::Partition>> partitions;
  for (store::RecordScan items(coordinator.store(), kWorkKind, coordinator.run() + "/");;) {
    MUSTER_ASSIGN(const std::optional<store::Record> record, items.Next());
    if (!record) break;
    const auto item = ItemBody::FromJson(record->body);
    if (!item && IsNewer(item.error())) return item.error();
    // An unreadable item is quarantined, and its collection is not one of these.
    if (!item || !item->from.empty() || !collections.contains(item->partition.collection)) {
      continue;
    }
    partitions[item->partition.collection].push_back(item->partition);
  }
  for (const auto& [collection, ones] : partitions) {
    MUSTER_TRY(pipeline::CheckCount(source, collection, ones,
                                    [&, &ones = ones] { return CountRead(coordinator, ones); }));
  }
  return {};
}

// Documents that the items wrote, by collection: each once, so without items that follow others,
// which write documents again that have changed.
Result<std::map<std::string, int64_t>> CountWritten(WorkCoordinator& coordinator) {
  std::map<std::string, int64_t> written;
  for (store::RecordScan items(coordinator.store(), kWorkKind, coordinator.run() + "/");;) {
    MUSTER_ASSIGN(const std::optional<store::Record> record, items.Next());
    if (!record) return written;
    const auto item = ItemBody::FromJson(record->body);
    if (!item || item->partition.follows) continue;
    written[item->partition.collection] += item->progress.counts.written;
  }
}

// Of collections that share a target, none may have replaced documents of another.
Status CheckMerges(WorkCoordinator& coordinator, const pipeline::Pipeline& pipeline,
                   const std::set<std::string>& collections, const std::string& incarnation) {
  const ChosenMerges chosen{
      .store = coordinator.store(), .run = coordinator.run(), .incarnation = incarnation};
  MUSTER_ASSIGN(const bool checked,
                chosen.Check(pipeline, collections, [&] { return CountWritten(coordinator); }));
  if (checked) return {};
  MUSTER_ASSIGN(const auto merged,
                pipeline::MergedCollections(pipeline, {collections.begin(), collections.end()}));
  if (merged.empty()) return {};
  MUSTER_ASSIGN(auto by_collection, CountWritten(coordinator));
  for (const auto& [target, ones] : merged) {
    int64_t written = 0;
    for (const std::string& one : ones) written += by_collection[one];
    MUSTER_TRY(pipeline::CheckMerged(pipeline, ones, written));
  }
  return {};
}

Result<RunBody> ReadRunBody(WorkCoordinator& coordinator) {
  MUSTER_ASSIGN(const std::optional<store::Record> record,
                coordinator.store().Get(kRunKind, coordinator.run()));
  if (!record) return Error{Code::kIncompatible, "the run is gone from the store", kGoneHint};
  return RunBody::FromJson(record->body);
}

// For a finished run, whose sink may be gone; but if it exists, it must contain what was written.
// Asked once.
Result<bool> KeepsItsTargets(WorkCoordinator& coordinator, pipeline::Sink& sink,
                             const std::string& incarnation) {
  if (coordinator.targets().checked() == incarnation) return true;
  const Status same = coordinator.targets().CheckAll(sink, incarnation);
  if (!same && same.error().code == Code::kIncompatible) return same.error();
  return true;
}

Result<bool> Finish(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline,
                    const pipeline::CollectionFilter& allowed) {
  store::Store& store = coordinator.store();
  MUSTER_ASSIGN(const RunBody run, ReadRunBody(coordinator));
  if (run.incarnation != coordinator.judged()) return false;
  MUSTER_ASSIGN(const bool finished, IsFinished(store, coordinator.run(), run));
  if (finished) return KeepsItsTargets(coordinator, pipeline.sink, run.incarnation);
  MUSTER_TRY(coordinator.budget().CountAll());
  std::set<std::string> incomplete;
  for (const std::string& name : coordinator.quarantined()) {
    MUSTER_ASSIGN(const pipeline::WorkItemName parsed, pipeline::WorkItemName::Parse(name));
    incomplete.insert(pipeline.transforms.TargetName(parsed.collection));
  }
  MUSTER_ASSIGN(const std::vector<std::string> collections,
                SelectedCollections(store, coordinator.run(), pipeline.source, allowed));
  std::set<std::string> complete;
  std::set<std::string> targets;
  for (const std::string& collection : collections) {
    const std::string target = pipeline.transforms.TargetName(collection);
    if (!incomplete.contains(target)) {
      complete.insert(collection);
      targets.insert(target);
    }
  }
  MUSTER_TRY(CheckCounts(coordinator, pipeline.source, complete));
  for (const std::string& target : targets) MUSTER_TRY(pipeline.sink.Finish(target));
  MUSTER_TRY(CheckMerges(coordinator, pipeline, complete, run.incarnation));
  MUSTER_TRY(coordinator.targets().CheckAll(pipeline.sink, run.incarnation));
  if (!coordinator.quarantined().empty()) return true;
  return coordinator.End();
}

}  // namespace

Result<std::vector<std::string>> SelectedCollections(store::Store& store, const std::string& run,
                                                     pipeline::Source& source,
                                                     const pipeline::CollectionFilter& allowed) {
  MUSTER_ASSIGN(const std::optional<store::Record> record, store.Get(kPrepareKind, run));
  if (record) {
    MUSTER_ASSIGN(PrepareBody body, PrepareBody::FromJson(record->body));
    if (body.done && !body.selected.empty()) return std::move(body.selected);
  }
  MUSTER_ASSIGN(const std::vector<pipeline::Collection> all, source.Collections());
  std::vector<std::string> names;
  for (const pipeline::Collection& one : all) {
    if (!allowed || allowed(one.name)) names.push_back(one.name);
  }
  return names;
}

Result<bool> FinishCollections(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline,
                               const pipeline::CollectionFilter& allowed) {
  // Counting again may be expensive: the worker's other slots leave it to this one.
  if (coordinator.finishing().exchange(true)) return false;
  Result<bool> finished = Finish(coordinator, pipeline, allowed);
  coordinator.finishing() = false;
  return finished;
}

}  // namespace muster::work
