#include "work/item_body.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/escape_bytes.h"
#include "core/json_fields.h"
#include "core/sha256.h"
#include "core/utf8.h"
#include "muster/store.h"
#include "pipeline/pipeline.h"

namespace muster::work {
namespace {

constexpr std::array<std::pair<ItemBody::State, std::string_view>, 3> kStateNames{{
    {ItemBody::State::kOpen, "open"},
    {ItemBody::State::kDone, "done"},
    {ItemBody::State::kQuarantined, "quarantined"},
}};

template <class T>
void PutIfAny(Json& json, const char* name, const std::optional<T>& value) {
  if (value) json[name] = *value;
}

Json ToJson(const pipeline::Partition& partition) {
  Json json{{"collection", EscapeBytes(partition.collection)}, {"shard", partition.shard}};
  if (!partition.part.empty()) json["part"] = EscapeBytes(partition.part);
  json["begin"] = EscapeBytes(partition.begin);
  json["end"] = EscapeBytes(partition.end);
  PutIfAny(json, "documents", partition.documents);
  PutIfAny(json, "bytes", partition.bytes);
  if (partition.follows) json["follows"] = true;
  if (!partition.mark.empty()) json["mark"] = EscapeBytes(partition.mark);
  return json;
}

// Text with arbitrary bytes.
std::string ReadBytes(JsonFields& fields, const char* name) {
  std::string escaped;
  fields.Read(name, escaped);
  auto bytes = UnescapeBytes(escaped);
  if (!bytes) fields.Mistake("'" + std::string(name) + "' is damaged");
  return bytes.value_or("");
}

pipeline::Partition ReadPartition(JsonFields& fields) {
  pipeline::Partition partition{.collection = ReadBytes(fields, "collection"),
                                .shard = 0,
                                .part = ReadBytes(fields, "part"),
                                .begin = ReadBytes(fields, "begin"),
                                .end = ReadBytes(fields, "end")};
  fields.Read("shard", partition.shard)
      .Read("documents", partition.documents)
      .Read("bytes", partition.bytes)
      .Read("follows", partition.follows);
  partition.mark = ReadBytes(fields, "mark");
  return partition;
}

}  // namespace

Result<Json> ParseBody(const std::string& json, std::string_view what) {
  Json body = Json::parse(json, nullptr, /*throws=*/false);
  MUSTER_TRY(CheckVersion(VersionOf(body), kFormat, what));
  return body;
}

std::string_view StateName(ItemBody::State state) {
  for (const auto& [value, name] : kStateNames) {
    if (value == state) return name;
  }
  return "open";
}

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

std::string ItemBody::ToJson() const {
  Json json{{kVersionField, kFormat.version},
            {"state", StateName(state)},
            {"partition", work::ToJson(partition)},
            {"progress", pipeline::JsonOf(progress)}};
  if (!from.empty()) json["from"] = from;
  if (rank != 0) json["rank"] = rank;
  if (waits != 0) json["waits"] = waits;
  PutIfAny(json, "fraction", fraction);
  if (kept) json["kept"] = true;
  if (whole) json["whole"] = true;
  if (!progress.former_ends.empty()) {
    Json names = Json::array();
    for (const pipeline::Partition& part : Successors()) names.push_back(NameOf(part));
    json["successors"] = std::move(names);
    json["created"] = created;
  }
  if (reasons.total() > 0) json["reasons"] = reasons.ToJson();
  if (!error.empty()) json["error"] = error;
  if (failures != 0) json["failures"] = failures;
  if (!failed.empty()) json["failed"] = failed;
  if (reported != 0) json["reported"] = reported;
  if (since_ms != 0) {
    json["since_ms"] = since_ms;
    json["since_read"] = since_read;
  }
  if (until_ms != 0) json["until_ms"] = until_ms;
  return ToJsonText(json);
}

Result<ItemBody> ItemBody::FromJson(const std::string& json) {
  constexpr const char* kWhat = "the body of a work item";
  MUSTER_ASSIGN(Json parsed, ParseBody(json, kWhat));
  JsonFields fields(std::move(parsed));
  ItemBody body;
  std::string state;
  Json partition, progress, reasons;
  fields.Need("state", state)
      .Need("partition", partition)
      .Need("progress", progress)
      .Read("from", body.from)
      .Read("rank", body.rank)
      .Read("waits", body.waits)
      .Read("fraction", body.fraction)
      .Read("kept", body.kept)
      .Read("whole", body.whole)
      .Read("created", body.created)
      .Read("since_ms", body.since_ms)
      .Read("since_read", body.since_read)
      .Read("until_ms", body.until_ms)
      .Read("error", body.error)
      .Read("failures", body.failures)
      .Read("failed", body.failed)
      .Read("reported", body.reported)
      .Read("reasons", reasons);
  body.reasons = FailureReasons::Read(reasons, fields);
  const auto* const known = std::find_if(kStateNames.begin(), kStateNames.end(),
                                         [&](const auto& pair) { return pair.second == state; });
  if (known == kStateNames.end()) fields.Mistake("its state is '" + Shortened(state) + "'");
  MUSTER_TRY(fields.Check(kWhat));
  body.state = known->first;
  JsonFields part(std::move(partition));
  body.partition = ReadPartition(part);
  MUSTER_TRY(part.Check(kWhat));
  auto read = pipeline::ProgressOf(progress);
  if (!read) fields.Mistake(read.error().message);
  if (read) body.progress = *std::move(read);
  if (body.created > body.progress.former_ends.size()) {
    fields.Mistake("it has more successors than ends");
  }
  MUSTER_TRY(fields.Check(kWhat));
  return body;
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
