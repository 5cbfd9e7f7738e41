#include "work/chosen_records.h"

#include <optional>
#include <utility>

#include "core/json.h"
#include "core/log.h"
#include "core/record_fields.h"
#include "core/sha256.h"
#include "pipeline/pipeline.h"
#include "store/store.h"
#include "work/records.h"
#include "work/target_check.h"

namespace muster::work {
namespace {

constexpr size_t kKeyDigits = 32;

constexpr RecordTable<ChosenBody, 2> kChosenTable{
    kFormat,
    {{Required<ChosenBody, &ChosenBody::target>("target"),
      Required<ChosenBody, &ChosenBody::collection, Escaped>("collection")}}};

std::string PrefixOf(const std::string& run, const std::string& incarnation) {
  return run + "/" + incarnation + "/";
}

Status EachChosen(store::Store& store, const std::string& prefix,
                  const std::function<void(const ChosenBody& body)>& each) {
  for (store::RecordScan records(store, kChosenKind, prefix);;) {
    MUSTER_ASSIGN(const std::optional<store::Record> record, records.Next());
    if (!record) return {};
    MUSTER_ASSIGN(const ChosenBody body, ChosenBody::FromJson(record->body));
    each(body);
  }
}

// Without aliases: each of several indices would have them, and writes by such an alias fail.
Result<std::string> WithoutAliases(const std::string& metadata, const std::string& collection) {
  MUSTER_ASSIGN(Json json, ParseJson(metadata, "metadata of " + collection));
  if (json.is_object()) json.erase("aliases");
  return ToJsonText(json);
}

}  // namespace

std::string ChosenBody::ToJson() const { return ToJsonText(kChosenTable.ToJson(*this)); }

Result<ChosenBody> ChosenBody::FromJson(const std::string& json) {
  return kChosenTable.Parse(json, "a target that documents choose");
}

Status ChosenRecords::Admit(const pipeline::Pipeline& pipeline, const std::string& collection,
                            const std::string& target, const pipeline::Fence& fence) {
  const std::string& incarnation = ChosenIncarnation(run_, fence);
  {
    const MutexLock lock(mutex_);
    if (admitted_.contains({incarnation, collection, target})) return {};
  }
  // Repeated by another slot that comes at the same time: nothing of it depends on being the first.
  if (target != pipeline.transforms.TargetName(collection)) {
    MUSTER_TRY(Prepare(pipeline, collection, target, incarnation));
  }
  MUSTER_TRY(Record(pipeline, collection, target, incarnation));
  const MutexLock lock(mutex_);
  admitted_.emplace(incarnation, collection, target);
  return {};
}

Status ChosenRecords::Prepare(const pipeline::Pipeline& pipeline, const std::string& collection,
                              const std::string& target, const std::string& incarnation) {
  MUSTER_TRY(
      CheckCount(collection, pipeline.transforms.TargetName(collection), target, incarnation));
  MUSTER_TRY(By(Party::kSink, CheckNotRead(pipeline, target)));
  TargetCheck identity(store_, run_);
  // One that the run has written to, and that is gone, is not created again.
  MUSTER_TRY(identity.Check(pipeline.sink, incarnation, target));
  MUSTER_TRY(Create(pipeline, collection, target));
  return identity.Check(pipeline.sink, incarnation, target);
}

Status ChosenRecords::CheckCount(const std::string& collection, const std::string& own,
                                 const std::string& target, const std::string& incarnation) {
  size_t chosen = 0;
  bool is_known = false;
  MUSTER_TRY(EachChosen(store_, PrefixOf(run_, incarnation), [&](const ChosenBody& body) {
    is_known |= body.target == target;
    if (body.collection == collection && body.target != own) ++chosen;
  }));
  if (is_known || chosen < kMostChosen) return {};
  return Error{Code::kIncompatible,
               "documents of " + collection + " choose more than " + std::to_string(kMostChosen) +
                   " indices: '" + target + "' would be one more",
               "let the script choose fewer, by year instead of by day, say; workers that are "
               "started with the corrected script need another name (--run)"};
}

Result<std::map<std::string, std::string>> ChosenRecords::TablesRead(
    const pipeline::Pipeline& pipeline) {
  {
    const MutexLock lock(mutex_);
    if (tables_) return *tables_;
  }
  std::map<std::string, std::string> tables;
  MUSTER_ASSIGN(const std::vector<std::string> collections, collections_());
  for (const std::string& one : collections) {
    MUSTER_ASSIGN(const std::string table, By(Party::kSource, pipeline.source.TableId(one)));
    if (!table.empty()) tables.emplace(table, one);
  }
  const MutexLock lock(mutex_);
  tables_ = tables;
  return tables;
}

Status ChosenRecords::CheckNotRead(const pipeline::Pipeline& pipeline, const std::string& target) {
  MUSTER_ASSIGN(const std::string table, pipeline.sink.TableId(target));
  if (table.empty()) return {};
  MUSTER_ASSIGN(const auto tables, TablesRead(pipeline));
  const auto read = tables.find(table);
  if (read == tables.end()) return {};
  return Error{
      Code::kIncompatible,
      "a document chooses '" + target + "', the index that " + read->second + " is read from",
      "let the script choose another name, or migrate into another cluster"};
}

Result<pipeline::Collection> ChosenRecords::ShapeOf(const pipeline::Pipeline& pipeline,
                                                    const std::string& collection) {
  {
    const MutexLock lock(mutex_);
    if (shape_.first == collection) return shape_.second;
  }
  MUSTER_ASSIGN(const auto described, By(Party::kSource, pipeline.source.Describe(collection)));
  if (!described) {
    return Error{Code::kNotFound, "the source does not list " + collection + " any more", "",
                 Party::kSource};
  }
  MUSTER_ASSIGN(pipeline::Collection shape, pipeline.transforms.Target(*described));
  MUSTER_ASSIGN(shape.metadata, WithoutAliases(shape.metadata, collection));
  const MutexLock lock(mutex_);
  shape_ = {collection, shape};
  return shape;
}

Status ChosenRecords::Create(const pipeline::Pipeline& pipeline, const std::string& collection,
                             const std::string& target) {
  MUSTER_ASSIGN(pipeline::Collection shape, ShapeOf(pipeline, collection));
  shape.name = target;
  const auto changes = By(Party::kSink, pipeline.sink.Prepare(shape, /*evaluate=*/false));
  if (!changes) {
    Error error = changes.error();
    // It is about all documents that go there: none of them is a dead letter.
    if (error.code == Code::kInvalid || error.code == Code::kNotFound) {
      error.code = Code::kIncompatible;
    }
    return error.Within("the index that documents of " + collection + " choose");
  }
  for (const pipeline::TargetChange& change : *changes) {
    Log(Level::kInfo, "a target that documents choose is created",
        {{"collection", collection}, {"target", change.collection}});
  }
  return {};
}

// By its table, so that an alias and its index are one.
Status ChosenRecords::Record(const pipeline::Pipeline& pipeline, const std::string& collection,
                             const std::string& target, const std::string& incarnation) {
  MUSTER_ASSIGN(const std::string table,
                By(Party::kSink, pipeline::TargetKey(pipeline.sink, target)));
  const std::string key = ChosenKey(run_, incarnation, table);
  const bool merge = pipeline.options.merge;
  return store::Update(
      store_, kChosenKind, key,
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
        if (!stored) {
          const ChosenBody body{.target = target, .collection = collection};
          return store::Change::Put(
              store::Record{.kind = kChosenKind, .queue = run_, .key = key, .body = body.ToJson()},
              store::Due::Never());
        }
        MUSTER_ASSIGN(const ChosenBody body, ChosenBody::FromJson(stored->body));
        if (merge || body.collection == collection) return std::nullopt;
        return SharesTarget(body.collection, collection, pipeline.sink.Place(target));
      });
}

std::string ChosenKey(const std::string& run, const std::string& incarnation,
                      const std::string& table) {
  return PrefixOf(run, incarnation) + Sha256Hex(table).substr(0, kKeyDigits);
}

Error SharesTarget(const std::string& first, const std::string& second, const std::string& place) {
  return Error{Code::kIncompatible,
               first + " and " + second + " both go to " + place +
                   ", where documents with the same id replace each other",
               "let the script choose different indices, or use --merge if their ids are "
               "different"};
}

const std::string& ChosenIncarnation(const std::string& run, const pipeline::Fence& fence) {
  return fence.alone ? run : fence.incarnation;
}

Result<bool> ChosenMerges::Check(const pipeline::Pipeline& pipeline,
                                 const std::set<std::string>& collections,
                                 const Written& written) const {
  // Deletes count as written.
  if (!pipeline.options.merge || collections.size() < 2 || pipeline.source.HasDeletes()) {
    return false;
  }
  std::set<std::string> own;
  for (const std::string& one : collections) own.insert(pipeline.transforms.TargetName(one));
  std::vector<std::string> targets;
  bool any = false;
  MUSTER_TRY(EachChosen(store, PrefixOf(run, incarnation), [&](const ChosenBody& body) {
    targets.push_back(body.target);
    any |= !own.contains(body.target);
  }));
  if (!any) return false;
  int64_t documents = 0;
  for (const std::string& target : targets) {
    MUSTER_ASSIGN(const auto count, By(Party::kSink, pipeline.sink.CountDocuments(target)));
    if (!count) return true;
    documents += *count;
  }
  MUSTER_ASSIGN(const auto by_collection, written());
  int64_t all = 0;
  for (const auto& [collection, count] : by_collection) {
    if (collections.contains(collection)) all += count;
  }
  if (documents >= all) return true;
  return Error{Code::kCorrupt,
               "the " + std::to_string(targets.size()) + " targets have " +
                   std::to_string(documents) + " documents, but " + std::to_string(all) +
                   " were written to them: documents with the same id have replaced each other",
               "these collections cannot be merged as they are: let the script choose different "
               "indices for them, or change the ids first"};
}

}  // namespace muster::work
