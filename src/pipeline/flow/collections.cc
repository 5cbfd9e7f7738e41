#include <algorithm>
#include <iterator>
#include <map>

#include "pipeline/flow/shards.h"

namespace muster::pipeline {

Status CheckDeletes(const Source& source, const Sink& sink) {
  if (!source.HasDeletes() || sink.CanDelete()) return {};
  return Error{Code::kIncompatible,
               "the source has deleted documents, and this sink cannot delete any",
               "migrate into OpenSearch, PostgreSQL or SQLite, or migrate everything again"};
}

Result<std::vector<Collection>> SelectCollections(Source& source, const CollectionFilter& allowed) {
  MUSTER_ASSIGN(std::vector<Collection> collections, source.Collections());
  if (allowed) {
    std::erase_if(collections, [&](const Collection& one) { return !allowed(one.name); });
  }
  for (const Collection& collection : collections) {
    if (collection.refusal) return *collection.refusal;
  }
  return collections;
}

namespace {

// Rows copied into the table they are read from are duplicated, or never end; documents of an index
// are changed in place.
Status CheckNotItself(const Pipeline& pipeline, const std::vector<Collection>& collections) {
  std::map<std::string, std::string> sources;  // collections by table
  std::map<std::string, std::string> targets;  // the same, by target
  for (const Collection& collection : collections) {
    MUSTER_ASSIGN(const std::string table, pipeline.source.TableId(collection.name));
    if (table.empty()) continue;
    sources.emplace(table, collection.name);
    targets.emplace(pipeline.transforms.TargetName(collection.name), collection.name);
  }
  for (const auto& [target, collection] : targets) {
    MUSTER_ASSIGN(const std::string table, pipeline.sink.TableId(target));
    const auto source = table.empty() ? sources.end() : sources.find(table);
    if (source == sources.end()) continue;
    return Error{
        Code::kInvalid,
        collection + " would be written to the table or index that " + source->second +
            " is read from",
        "name another target: another database, schema, table, cluster or index, or rename_index; "
        "or leave " +
            source->second + " out (--exclude)"};
  }
  return {};
}

}  // namespace

Result<std::string> TargetKey(Sink& sink, const std::string& target) {
  MUSTER_ASSIGN(std::string id, sink.TableId(target));
  return id.empty() ? "place " + sink.Place(target) : "table " + id;
}

Status CheckTargets(const Pipeline& pipeline, const std::vector<Collection>& collections) {
  struct Taken {
    std::string collection;
    std::string target;
  };
  MUSTER_TRY(CheckNotItself(pipeline, collections));
  std::map<std::string, Taken> taken;  // by TargetKey
  for (const Collection& collection : collections) {
    MUSTER_ASSIGN(const Collection renamed, pipeline.transforms.Target(collection));
    // Fail before writing anything if the sink will never accept a collection, because of its name,
    // say.
    MUSTER_TRY(pipeline.sink.Prepare(renamed, /*evaluate=*/true));
    if (pipeline.options.merge) continue;
    const std::string place = pipeline.sink.Place(renamed.name);
    MUSTER_ASSIGN(const std::string key, TargetKey(pipeline.sink, renamed.name));
    const auto [other, is_first] = taken.emplace(key, Taken{collection.name, renamed.name});
    if (is_first) continue;
    const bool same_name = other->second.target == renamed.name;
    if (same_name && !pipeline.sink.ReplacesById(renamed)) continue;
    const std::string former = pipeline.sink.Place(other->second.target);
    return Error{Code::kConflict,
                 other->second.collection + " and " + collection.name + " both go to " + place +
                     (same_name         ? ", where documents with the same id replace each other"
                      : former == place ? ": this sink takes their names for the same"
                                        : ": in the target, " + former +
                                              " is another name of the same table or index"),
                 "send each to its own target (rename_index), or use --merge if their ids "
                 "are different"};
  }
  return {};
}

Status CheckCount(Source& source, const std::string& collection,
                  const std::vector<Partition>& partitions,
                  const std::function<Result<int64_t>()>& read) {
  MUSTER_ASSIGN(const std::optional<int64_t> count, source.CountAgain(partitions));
  if (!count) return {};
  MUSTER_ASSIGN(const int64_t seen, read());
  if (seen == *count) return {};
  return Error{Code::kCorrupt,
               collection + ": the source counts " + std::to_string(*count) + " documents, but " +
                   std::to_string(seen) + " were read",
               "what was migrated is not complete: do not rely on it. Run 'muster verify' to see "
               "what differs"};
}

Result<std::map<std::string, std::vector<std::string>>> MergedCollections(
    const Pipeline& pipeline, const std::vector<std::string>& collections) {
  std::map<std::string, std::vector<std::string>> targets;
  if (collections.size() < 2) return targets;
  for (const std::string& one : collections) {
    MUSTER_ASSIGN(const std::string key,
                  TargetKey(pipeline.sink, pipeline.transforms.TargetName(one)));
    targets[key].push_back(one);
  }
  std::erase_if(targets, [](const auto& target) { return target.second.size() < 2; });
  return targets;
}

Status CheckMerged(const Pipeline& pipeline, const std::vector<std::string>& collections,
                   int64_t written) {
  // Deletes count as written.
  if (pipeline.source.HasDeletes()) return {};
  const std::string target = pipeline.transforms.TargetName(collections.front());
  MUSTER_ASSIGN(const std::optional<int64_t> count, pipeline.sink.CountDocuments(target));
  if (!count || *count >= written) return {};
  constexpr size_t kNamed = 5;
  std::string names;
  for (size_t i = 0; i < std::min(collections.size(), kNamed); ++i) {
    names += (i == 0 ? "" : ", ") + collections[i];
  }
  if (collections.size() > kNamed) names += ", …";
  return Error{Code::kCorrupt,
               pipeline.sink.Place(target) + " has " + std::to_string(*count) + " documents, but " +
                   std::to_string(written) + " were written to it from " + names +
                   ": documents with the same id have replaced each other",
               "these collections cannot be merged as they are: migrate each to its own target "
               "(rename_index), or change the ids first"};
}

Result<std::vector<TargetChange>> PrepareCollections(Pipeline& pipeline,
                                                     const CollectionFilter& allowed,
                                                     bool evaluate) {
  MUSTER_ASSIGN(const auto collections, SelectCollections(pipeline.source, allowed));
  return PrepareSelected(pipeline, collections, evaluate);
}

Result<std::vector<TargetChange>> PrepareSelected(Pipeline& pipeline,
                                                  const std::vector<Collection>& collections,
                                                  bool evaluate) {
  MUSTER_TRY(CheckDeletes(pipeline.source, pipeline.sink));
  MUSTER_TRY(CheckTargets(pipeline, collections));
  MUSTER_ASSIGN(const std::string global, pipeline.source.GlobalMetadata());
  std::vector<TargetChange> all;
  for (const Collection& collection : collections) {
    MUSTER_ASSIGN(const Collection target, pipeline.transforms.Target(collection));
    MUSTER_ASSIGN(std::vector<TargetChange> changes, pipeline.sink.Prepare(target, evaluate));
    std::move(changes.begin(), changes.end(), std::back_inserter(all));
  }
  // Last: templates would apply to the collections' targets.
  MUSTER_ASSIGN(std::vector<TargetChange> changes, pipeline.sink.PrepareGlobal(global, evaluate));
  std::move(changes.begin(), changes.end(), std::back_inserter(all));
  return all;
}

}  // namespace muster::pipeline
