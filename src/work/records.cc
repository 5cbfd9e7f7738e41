#include "work/records.h"

#include <algorithm>
#include <cstdio>

#include "base/json.h"

namespace muster {
namespace {

constexpr size_t kLongestRunName = 100;

Error NotOurs(const std::string& what, const std::string& json) {
  return Error{Code::kCorrupt, "body of a " + what + " is not one of ours: " + json.substr(0, 200),
               "use a namespace of its own for each deployment"};
}

Json Parse(const std::string& json) { return Json::parse(json, nullptr, false); }

template <class T>
T Field(const Json& json, const char* name, T otherwise) {
  if (!json.is_object()) return otherwise;
  const auto found = json.find(name);
  if (found == json.end()) return otherwise;
  if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() ? found->get<bool>() : otherwise;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return found->is_number() ? found->get<T>() : otherwise;
  } else {
    return found->is_string() ? found->get<T>() : otherwise;
  }
}

}  // namespace

std::string RunBody::ToJson() const {
  return ToJsonText(Json{{"incarnation", incarnation},
                         {"adopts", adopts},
                         {"state", finished ? "finished"
                                   : ready  ? "ready"
                                            : "preparing"},
                         {"pages", pages},
                         {"source", source},
                         {"sink", sink},
                         {"transforms", transforms},
                         {"selection", selection ? Json(*selection) : Json()},
                         {"created_ms", created_ms},
                         {"since_ms", since_ms}});
}

Result<RunBody> RunBody::FromJson(const std::string& json) {
  const Json parsed = Parse(json);
  const std::string state = parsed.is_object() ? Field<std::string>(parsed, "state", "") : "";
  if (state != "preparing" && state != "ready" && state != "finished") return NotOurs("run", json);
  RunBody body;
  body.incarnation = Field<std::string>(parsed, "incarnation", "");
  body.adopts = Field(parsed, "adopts", false);
  body.finished = state == "finished";
  body.ready = body.finished || state == "ready";
  body.pages = Field(parsed, "pages", 0);
  body.source = Field<std::string>(parsed, "source", "");
  body.sink = Field<std::string>(parsed, "sink", "");
  body.transforms = Field<std::string>(parsed, "transforms", "");
  if (const auto found = parsed.find("selection"); found != parsed.end() && found->is_string()) {
    body.selection = found->get<std::string>();
  }
  body.created_ms = Field<int64_t>(parsed, "created_ms", 0);
  body.since_ms = Field<int64_t>(parsed, "since_ms", body.created_ms);
  if (body.incarnation.empty()) return NotOurs("run", json);
  return body;
}

std::string PageBody::ToJson() const { return ToJsonText(Json{{"items", items}}); }

Result<PageBody> PageBody::FromJson(const std::string& json) {
  const Json parsed = Parse(json);
  if (!parsed.is_object() || !parsed.contains("items") || !parsed["items"].is_array()) {
    return NotOurs("page of a run", json);
  }
  PageBody body;
  for (const Json& name : parsed["items"]) {
    if (!name.is_string()) return NotOurs("page of a run", json);
    body.items.push_back(name.get<std::string>());
  }
  return body;
}

std::string RedriveBody::ToJson() const {
  return ToJsonText(Json{{"file", file},
                         {"lines", lines},
                         {"read", counts.read},
                         {"written", counts.written},
                         {"skipped", counts.skipped},
                         {"failed", counts.failed},
                         {"transforms", transforms},
                         {"ended_ms", ended_ms}});
}

Result<RedriveBody> RedriveBody::FromJson(const std::string& json) {
  const Json parsed = Parse(json);
  if (!parsed.is_object() || !parsed.contains("lines")) return NotOurs("redrive", json);
  return RedriveBody{.file = Field<std::string>(parsed, "file", ""),
                     .lines = Field<int64_t>(parsed, "lines", 0),
                     .counts = {.read = Field<int64_t>(parsed, "read", 0),
                                .written = Field<int64_t>(parsed, "written", 0),
                                .skipped = Field<int64_t>(parsed, "skipped", 0),
                                .failed = Field<int64_t>(parsed, "failed", 0)},
                     .transforms = Field<std::string>(parsed, "transforms", ""),
                     .ended_ms = Field<int64_t>(parsed, "ended_ms", 0)};
}

std::string RedriveKey(const std::string& run, const std::string& fingerprint) {
  return run + "/" + fingerprint.substr(0, 32);
}

std::string PageKey(const std::string& run, int page) {
  char number[16];
  std::snprintf(number, sizeof number, "/%06d", page);
  return run + number;
}

std::string EndKey(const std::string& run, const std::string& incarnation, int page) {
  const std::string key = run + "/" + incarnation;
  return page == 0 ? key : PageKey(key, page);
}

Result<bool> IsFinished(Store& store, const std::string& run, const RunBody& body) {
  if (body.finished) return true;
  MUSTER_ASSIGN(const std::optional<Record> end,
                store.Get(kEndKind, EndKey(run, body.incarnation)));
  return end && Field(Parse(end->body), "confirmed", false);
}

std::string PrepareBody::ToJson() const {
  return ToJsonText(Json{{"state", done ? "done" : "open"},
                         {"collection", collection},
                         {"partitions", partitions},
                         {"pages", pages}});
}

Result<PrepareBody> PrepareBody::FromJson(const std::string& json) {
  const Json parsed = Parse(json);
  if (!parsed.is_object() || !parsed.contains("pages")) return NotOurs("preparation", json);
  return PrepareBody{.done = Field<std::string>(parsed, "state", "") == "done",
                     .collection = Field<size_t>(parsed, "collection", 0),
                     .partitions = Field<size_t>(parsed, "partitions", 0),
                     .pages = Field(parsed, "pages", 0)};
}

Status BeginPreparation(Store& store, const std::string& run) {
  Record record{.kind = kPrepareKind, .queue = run, .key = run};
  MUSTER_ASSIGN(const std::optional<Record> stored, store.Get(record.kind, record.key));
  if (stored) record = *stored;
  record.owner.clear();
  record.body = PrepareBody{}.ToJson();
  const Change change = Change::Put(std::move(record), Due::Now());
  MUSTER_TRY(store.Write({&change, 1}));
  return {};
}

Change NewItem(const std::string& run, const ItemBody& body) {
  return Change::Put(Record{.kind = kWorkKind,
                            .queue = run,
                            .key = ItemKey(run, NameOf(body.partition)),
                            .body = body.ToJson()},
                     Due::Now());
}

Status CheckRunName(const std::string& name) {
  const bool good = !name.empty() && name.size() <= kLongestRunName &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return Error{Code::kInvalid, "'" + name + "' cannot be the name of a run",
               "use up to 100 letters, digits, '-', '_' and '.'"};
}

}  // namespace muster
