#include "work/item_body.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"
#include "base/sha256.h"
#include "muster/migrate.h"
#include "muster/store.h"
#include "pipeline/escape.h"
#include "pipeline/progress_json.h"

namespace muster {
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

Json ToJson(const Partition& partition) {
  Json json{{"collection", EscapeBytes(partition.collection)}, {"shard", partition.shard}};
  if (!partition.part.empty()) json["part"] = EscapeBytes(partition.part);
  json["begin"] = EscapeBytes(partition.begin);
  json["end"] = EscapeBytes(partition.end);
  PutIfAny(json, "documents", partition.documents);
  PutIfAny(json, "bytes", partition.bytes);
  if (partition.follows) json["follows"] = true;
  return json;
}

// Reads fields of an object, and remembers whether one of them was not what it should be.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json), good_(json.is_object()) {}

  bool good() const { return good_; }

  std::string Bytes(const char* name) {
    const Json* field = Find(name);
    if (field == nullptr) return {};
    auto bytes =
        field->is_string() ? UnescapeBytes(field->get_ref<const std::string&>()) : std::nullopt;
    if (!bytes) good_ = false;
    return bytes.value_or("");
  }

  template <class T>
  std::optional<T> Number(const char* name) {
    const Json* field = Find(name);
    if (field == nullptr) return std::nullopt;
    if (!field->is_number()) {
      good_ = false;
      return std::nullopt;
    }
    return field->get<T>();
  }

  bool Flag(const char* name) {
    const Json* field = Find(name);
    return field != nullptr && field->is_boolean() && field->get<bool>();
  }

  const Json* Find(const char* name) {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }

 private:
  const Json& json_;
  bool good_;
};

std::optional<Partition> PartitionOf(const Json* json) {
  if (json == nullptr) return std::nullopt;
  Fields fields(*json);
  Partition partition{.collection = fields.Bytes("collection"),
                      .shard = fields.Number<int>("shard").value_or(0),
                      .part = fields.Bytes("part"),
                      .begin = fields.Bytes("begin"),
                      .end = fields.Bytes("end"),
                      .documents = fields.Number<int64_t>("documents"),
                      .bytes = fields.Number<int64_t>("bytes"),
                      .follows = fields.Flag("follows")};
  if (!fields.good()) return std::nullopt;
  return partition;
}

}  // namespace

std::string_view StateName(ItemBody::State state) {
  for (const auto& [value, name] : kStateNames) {
    if (value == state) return name;
  }
  return "open";
}

ItemBody ItemBody::Of(const Partition& partition, std::string from, int64_t rank) {
  ItemBody body;
  body.partition = partition;
  body.from = std::move(from);
  body.rank = rank;
  body.progress.end = partition.end;
  return body;
}

std::vector<Partition> ItemBody::Successors() const {
  std::vector<Partition> parts;
  const std::vector<std::string>& ends = progress.former_ends;
  for (size_t i = 0; i < ends.size(); ++i) {
    Partition part = partition;
    part.begin = i + 1 < ends.size() ? ends[i + 1] : progress.end;
    part.end = ends[i];
    part.documents.reset();
    part.bytes.reset();
    parts.push_back(std::move(part));
  }
  return parts;
}

bool ItemBody::Gave(const ItemBody& successor) const {
  const std::vector<Partition> parts = Successors();
  return std::any_of(parts.begin(), parts.end(), [&](const Partition& part) {
    return part.begin == successor.partition.begin && part.end == successor.partition.end;
  });
}

double ItemBody::Left() const {
  const double left = 1.0 - fraction.value_or(0.0);
  return partition.documents ? static_cast<double>(*partition.documents) * left : left;
}

std::string ItemBody::ToJson() const {
  Json json{{"state", StateName(state)},
            {"partition", muster::ToJson(partition)},
            {"progress", JsonOf(progress)}};
  if (!from.empty()) json["from"] = from;
  if (rank != 0) json["rank"] = rank;
  if (waits != 0) json["waits"] = waits;
  PutIfAny(json, "fraction", fraction);
  if (kept) json["kept"] = true;
  if (whole) json["whole"] = true;
  if (!progress.former_ends.empty()) {
    Json names = Json::array();
    for (const Partition& part : Successors()) names.push_back(NameOf(part));
    json["successors"] = std::move(names);
    json["created"] = created;
  }
  if (!error.empty()) json["error"] = error;
  if (since_ms != 0) {
    json["since_ms"] = since_ms;
    json["since_read"] = since_read;
  }
  return ToJsonText(json);
}

Result<ItemBody> ItemBody::FromJson(const std::string& json) {
  const Json parsed = Json::parse(json, nullptr, /*throws=*/false);
  const auto bad = [&] {
    return Error{Code::kCorrupt, "body of a work item is not one of ours: " + json.substr(0, 200),
                 "use a namespace of its own for each deployment"};
  };
  Fields fields(parsed);
  ItemBody body;
  const std::string state = fields.Bytes("state");
  bool known = false;
  for (const auto& [value, name] : kStateNames) {
    if (name != state) continue;
    body.state = value;
    known = true;
  }
  auto partition = PartitionOf(fields.Find("partition"));
  const Json* progress = fields.Find("progress");
  if (!known || !partition || progress == nullptr) return bad();
  body.partition = *std::move(partition);
  auto read = ProgressOf(*progress);
  if (!read) return bad();
  body.progress = *std::move(read);
  if (const Json* from = fields.Find("from"); from != nullptr && from->is_string()) {
    body.from = from->get<std::string>();
  }
  body.rank = fields.Number<int64_t>("rank").value_or(0);
  body.waits = fields.Number<int>("waits").value_or(0);
  body.fraction = fields.Number<double>("fraction");
  body.kept = fields.Flag("kept");
  body.whole = fields.Flag("whole");
  body.created = fields.Number<size_t>("created").value_or(0);
  body.since_ms = fields.Number<int64_t>("since_ms").value_or(0);
  body.since_read = fields.Number<int64_t>("since_read").value_or(0);
  if (const Json* error = fields.Find("error"); error != nullptr && error->is_string()) {
    body.error = error->get<std::string>();
  }
  if (!fields.good() || body.created > body.progress.former_ends.size()) return bad();
  return body;
}

std::string NameOf(const Partition& partition) {
  return WorkItemName{partition.collection, partition.shard, partition.begin}.ToString();
}

std::string ItemKey(const std::string& run, const std::string& name) {
  std::string key = run + "/" + name;
  if (key.size() > kMaxKeyBytes) key = run + "/sha256-" + Sha256Hex(name);
  return key;
}

}  // namespace muster
