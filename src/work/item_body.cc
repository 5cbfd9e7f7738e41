#include "work/item_body.h"

#include <algorithm>
#include <utility>

#include "core/record_fields.h"
#include "core/sha256.h"
#include "muster/store.h"
#include "pipeline/pipeline.h"

namespace muster::work {
namespace {

constexpr EnumNames<ItemBody::State, 3> kStateNames{{{
    {ItemBody::State::kOpen, "open"},
    {ItemBody::State::kDone, "done"},
    {ItemBody::State::kQuarantined, "quarantined"},
}}};

using pipeline::Partition;

constexpr RecordFields<Partition, 9> kPartitionFields{{
    Always<Partition, &Partition::collection, Escaped>("collection"),
    Always<Partition, &Partition::shard>("shard"),
    Field<Partition, &Partition::part, Escaped>("part"),
    Always<Partition, &Partition::begin, Escaped>("begin"),
    Always<Partition, &Partition::end, Escaped>("end"),
    Field<Partition, &Partition::documents>("documents"),
    Field<Partition, &Partition::bytes>("bytes"),
    Field<Partition, &Partition::follows>("follows"),
    Field<Partition, &Partition::mark, Escaped>("mark"),
}};

struct AsProgress {
  static Json Write(const pipeline::Progress& progress) { return pipeline::JsonOf(progress); }
  static void Read(JsonFields& fields, std::string_view name, pipeline::Progress& progress) {
    const Json* found = fields.Find(name);
    if (found == nullptr) return;
    auto read = pipeline::ProgressOf(*found);
    if (!read) return fields.Mistake(read.error().message);
    progress = *std::move(read);
  }
};

// By name, for people and other tools: read from the ends of the progress.
void PutSuccessors(const ItemBody& from, Json& json, std::string_view name) {
  if (from.progress.former_ends.empty()) return;
  json[name] = Json::array();
  for (const Partition& part : from.Successors()) json[name].push_back(NameOf(part));
}

constexpr RecordTable<ItemBody, 19> kItemTable{
    kFormat,
    {{
        Named<ItemBody, &ItemBody::state, kStateNames>("state"),
        Required<ItemBody, &ItemBody::partition, Nested<kPartitionFields>>("partition"),
        Required<ItemBody, &ItemBody::progress, AsProgress>("progress"),
        Field<ItemBody, &ItemBody::from>("from"),
        Field<ItemBody, &ItemBody::rank>("rank"),
        Field<ItemBody, &ItemBody::waits>("waits"),
        Field<ItemBody, &ItemBody::fraction>("fraction"),
        Field<ItemBody, &ItemBody::kept>("kept"),
        Field<ItemBody, &ItemBody::whole>("whole"),
        {"successors", PutSuccessors, [](JsonFields&, ItemBody&, std::string_view) {}},
        {"created",
         [](const ItemBody& from, Json& json, std::string_view name) {
           if (!from.progress.former_ends.empty()) json[name] = from.created;
         },
         [](JsonFields& fields, ItemBody& to, std::string_view name) {
           fields.Read(name, to.created);
           if (to.created > to.progress.former_ends.size()) {
             fields.Mistake("it has more successors than ends");
           }
         }},
        {"reasons",
         [](const ItemBody& from, Json& json, std::string_view name) {
           if (from.reasons.total() > 0) json[name] = from.reasons.ToJson();
         },
         [](JsonFields& fields, ItemBody& to, std::string_view name) {
           if (const Json* found = fields.Find(name)) {
             to.reasons = FailureReasons::Read(*found, fields);
           }
         }},
        Field<ItemBody, &ItemBody::error>("error"),
        Field<ItemBody, &ItemBody::failures>("failures"),
        Field<ItemBody, &ItemBody::failed>("failed"),
        Field<ItemBody, &ItemBody::reported>("reported"),
        Field<ItemBody, &ItemBody::since_ms>("since_ms"),
        {"since_read",
         [](const ItemBody& from, Json& json, std::string_view name) {
           if (from.since_ms != 0) json[name] = from.since_read;
         },
         [](JsonFields& fields, ItemBody& to, std::string_view name) {
           fields.Read(name, to.since_read);
         }},
        Field<ItemBody, &ItemBody::until_ms>("until_ms"),
    }}};

}  // namespace

std::string_view StateName(ItemBody::State state) { return kStateNames.NameOf(state); }

ItemBody ItemBody::Of(const pipeline::Partition& partition, std::string from, int64_t rank) {
  ItemBody body;
  body.partition = partition;
  body.from = std::move(from);
  body.rank = rank;
  body.progress.end = partition.end;
  return body;
}

std::vector<pipeline::Partition> ItemBody::Successors() const {
  std::vector<pipeline::Partition> parts;
  const std::vector<std::string>& ends = progress.former_ends;
  for (size_t i = 0; i < ends.size(); ++i) {
    pipeline::Partition part = partition;
    part.begin = i + 1 < ends.size() ? ends[i + 1] : progress.end;
    part.end = ends[i];
    part.documents.reset();
    part.bytes.reset();
    parts.push_back(std::move(part));
  }
  return parts;
}

bool ItemBody::HasSplitOff(const ItemBody& successor) const {
  const std::vector<pipeline::Partition> parts = Successors();
  return std::any_of(parts.begin(), parts.end(), [&](const pipeline::Partition& part) {
    return part.begin == successor.partition.begin && part.end == successor.partition.end;
  });
}

void ItemBody::ForgetFailures() {
  failures = 0;
  failed.clear();
  reported = 0;
}

double ItemBody::Left() const {
  const double left = 1.0 - fraction.value_or(0.0);
  return partition.documents ? static_cast<double>(*partition.documents) * left : left;
}

std::string ItemBody::ToJson() const { return ToJsonText(kItemTable.ToJson(*this)); }

Result<ItemBody> ItemBody::FromJson(const std::string& json) {
  return kItemTable.Parse(json, "the body of a work item");
}

std::string NameOf(const pipeline::Partition& partition) {
  return pipeline::WorkItemName{partition.collection, partition.shard, partition.begin}.ToString();
}

std::string ItemKey(const std::string& run, const std::string& name) {
  std::string key = run + "/" + name;
  if (key.size() > store::kMaxKeyBytes) key = run + "/sha256-" + Sha256Hex(name);
  return key;
}

}  // namespace muster::work
