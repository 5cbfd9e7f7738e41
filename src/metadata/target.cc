#include "metadata/target.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/interrupt.h"
#include "core/json_fields.h"
#include "core/log.h"
#include "core/regex.h"

namespace muster::metadata {
namespace {

constexpr size_t kMaxDropped = 100;
constexpr const char* kTemporary = "muster-evaluate-";

// An object in the response to a GET.
Json ObjectIn(Kind kind, const std::string& name, const Json& answer) {
  const auto listed = [&](const char* list, const char* member) {
    for (const Json& entry : MemberIn(answer, list)) {
      if (TextIn(entry, "name") == name) {
        return *member == '\0' ? Json(entry) : Json(MemberIn(entry, member));
      }
    }
    return Json();
  };
  switch (kind) {
    case Kind::kComponentTemplate:
      return listed("component_templates", "component_template");
    case Kind::kIndexTemplate:
      return listed("index_templates", "index_template");
    case Kind::kDataStream:
      return listed("data_streams", "");
    case Kind::kPolicy:
      return answer.contains("policy") ? Json{{"policy", answer["policy"]}}
                                       : Json(MemberIn(answer, name));
    default:
      break;
  }
  return MemberIn(answer, name);
}

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Whether the object has that setting.
bool DropSetting(Kind kind, const std::string& name, Json& body) {
  if (!MemberIn(ContentOf<const Json>(kind, body), "settings").contains(name)) return false;
  return ContentOf(kind, body)["settings"].erase(name) > 0;
}

// Deletes it in any case, also after an interrupt.
template <class Action>
class AtEnd {
 public:
  explicit AtEnd(Action action) : action_(std::move(action)) {}
  ~AtEnd() {
    const InterruptScope uninterrupted{std::stop_token()};
    action_();
  }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  Action action_;
};

// Names that no query finds: trial objects must not take part in anything.
void HideAliases(const std::string& index, Json& body) {
  if (!body.contains("aliases")) return;
  Json hidden = Json::object();
  int number = 0;
  for (const auto& [name, options] : body["aliases"].items()) {
    hidden[index + "-alias-" + std::to_string(number++)] = options;
  }
  body["aliases"] = std::move(hidden);
}

bool MatchesTemplate(const std::string& index, const Json& body) {
  for (const Json& text : MemberIn(body, "index_patterns")) {
    const auto pattern = Pattern::Parse(text.is_string() ? text.get<std::string>() : "");
    if (pattern && pattern->Matches(index)) return true;
  }
  return false;
}

// Older templates all apply, those of a higher order last.
Json MergedTemplates(const std::string& index, const Json& all) {
  std::vector<std::pair<int64_t, const Json*>> matching;
  for (const Json& body : all) {
    if (MatchesTemplate(index, body)) matching.emplace_back(NumberIn(body, "order"), &body);
  }
  std::stable_sort(matching.begin(), matching.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Json merged = Json::object();
  for (const auto& [order, body] : matching) {
    for (const char* part : {"settings", "mappings", "aliases"}) {
      if (MemberIn(*body, part).is_object()) merged[part].merge_patch((*body)[part]);
    }
  }
  return merged;
}

}  // namespace

bool IsRefusal(const Error& error) {
  return error.code == Code::kInvalid || error.code == Code::kPermission ||
         error.code == Code::kNotFound || error.code == Code::kConflict ||
         error.code == Code::kFull;
}

bool IsNoSuchApi(const Error& error) {
  return Contains(error.message, "no handler found") ||
         Contains(error.message, "Incorrect HTTP method") ||
         Contains(error.message, "Invalid index name [_");
}

std::vector<std::string> UnknownSettings(const std::string& message) {
  static constexpr std::array<std::string_view, 3> kBefore = {
      "unknown setting [", "private index setting [", "unknown secure setting ["};
  std::vector<std::string> names;
  for (const std::string_view before : kBefore) {
    for (size_t at = message.find(before); at != std::string::npos; at = message.find(before, at)) {
      at += before.size();
      const size_t end = message.find(']', at);
      if (end == std::string::npos) break;
      names.push_back(message.substr(at, end - at));
    }
  }
  return names;
}

Result<ClusterVersion> VersionOf(net::OpenSearchClient& client) {
  const auto about = client.SendForJson({.path = "/"});
  if (!about && about.error().code != Code::kNotFound && about.error().code != Code::kInvalid) {
    return about.error();
  }
  const ClusterVersion version = about ? ClusterVersion::FromRoot(*about) : ClusterVersion();
  return version.IsKnown() ? version : ClusterVersion{Engine::kOpenSearch, 2, 19};
}

std::string Target::PathOf(Kind kind, const std::string& name) const {
  const std::string encoded = net::OpenSearchPath(name);
  switch (kind) {
    case Kind::kPolicy:
      return (version_.engine == Engine::kOpenSearch ? "/_plugins/_ism/policies/"
                                                     : "/_ilm/policy/") +
             encoded;
    case Kind::kPipeline:
      return "/_ingest/pipeline/" + encoded;
    case Kind::kComponentTemplate:
      return "/_component_template/" + encoded;
    case Kind::kIndexTemplate:
      return "/_index_template/" + encoded;
    case Kind::kTemplate:
      return "/_template/" + encoded;
    case Kind::kDataStream:
      return "/_data_stream/" + encoded;
    case Kind::kIndex:
      break;
  }
  return "/" + encoded;
}

Result<std::optional<Json>> Target::Find(Kind kind, const std::string& name) {
  // A pattern would find others.
  if (name.find_first_of("*,") != std::string::npos) return std::optional<Json>();
  const auto answer = client_.SendForJson({.path = PathOf(kind, name)});
  if (!answer) {
    if (answer.error().code == Code::kNotFound) return std::optional<Json>();
    return answer.error();
  }
  Json found = ObjectIn(kind, name, *answer);
  // An alias of that name blocks it, too.
  if (found.is_null() && kind == Kind::kIndex && !answer->empty()) {
    return Error{Code::kConflict, "the target has an alias of that name",
                 "remove the alias, or leave the index out (--exclude)"};
  }
  if (!found.is_object()) return std::optional<Json>();
  return std::optional(std::move(found));
}

Result<bool> Target::Knows(Kind kind) {
  const auto found = Find(kind, "muster-unknown");
  if (found) return true;
  if (IsNoSuchApi(found.error())) return false;
  return found.error();
}

Result<std::vector<std::string>> Target::Put(const net::OpenSearchCall& call, Kind kind,
                                             Json& body) {
  std::vector<std::string> dropped;
  while (true) {
    net::OpenSearchCall sent = call;
    sent.body = ToJsonText(body);
    const auto made = client_.SendForJson(sent);
    if (made) return dropped;
    const size_t before = dropped.size();
    for (const std::string& name : UnknownSettings(made.error().message)) {
      if (DropSetting(kind, name, body)) dropped.push_back(name);
    }
    if (dropped.size() == before || dropped.size() > kMaxDropped) return made.error();
  }
}

Result<std::vector<std::string>> Target::PutWithoutBody(const net::OpenSearchCall& call) {
  MUSTER_TRY(client_.SendForJson(call));
  return std::vector<std::string>();
}

Result<std::vector<std::string>> Target::Create(Kind kind, const std::string& name, Json body) {
  net::OpenSearchCall call{.method = "PUT", .path = PathOf(kind, name)};
  auto made = kind == Kind::kDataStream ? PutWithoutBody(call) : Put(call, kind, body);
  if (made) return made;
  Error error = made.error();
  if (Contains(error.message, "already exists") || Contains(error.message, "already_exists")) {
    error.code = Code::kConflict;
  }
  return error;
}

Result<std::vector<std::string>> Target::Try(Kind kind, Json body,
                                             const std::vector<Sample>& documents) {
  switch (kind) {
    case Kind::kIndex:
      return TryIndex(std::move(body), documents);
    case Kind::kComponentTemplate:
    case Kind::kIndexTemplate:
    case Kind::kTemplate:
      return TryTemplate(kind, std::move(body));
    case Kind::kPipeline: {
      const Json request{{"pipeline", body},
                         {"docs", Json::array({Json{{"_source", Json::object()}}})}};
      const auto simulated = client_.SendForJson({.method = "POST",
                                                  .path = "/_ingest/pipeline/_simulate",
                                                  .body = ToJsonText(request),
                                                  .writes = false});
      if (!simulated) return simulated.error();
      return std::vector<std::string>();
    }
    case Kind::kPolicy:
    case Kind::kDataStream:
      break;  // there is no way to try them
  }
  return std::vector<std::string>();
}

Result<std::vector<std::string>> Target::TryIndex(Json body, const std::vector<Sample>& documents) {
  const std::string index = kTemporary + env_.NewId();
  HideAliases(index, body);
  body["settings"]["index.number_of_replicas"] = "0";
  body["settings"].erase("index.auto_expand_replicas");
  // A pipeline would change the documents, if the target has it at all.
  body["settings"].erase("index.default_pipeline");
  body["settings"].erase("index.final_pipeline");
  bool is_certain = false;  // that it was created, or was not
  const AtEnd remove([&] { Delete(index, is_certain); });
  const std::string wait = documents.empty() ? "?wait_for_active_shards=0" : "";
  const auto dropped = CreateTemporary(PathOf(Kind::kIndex, index) + wait, body);
  is_certain = dropped || IsRefusal(dropped.error());
  if (!dropped) return dropped.error();
  MUSTER_TRY(TryDocuments(index, documents));
  return *dropped;
}

// Uninterrupted: a creation that was cut off might take effect after its deletion.
Result<std::vector<std::string>> Target::CreateTemporary(const std::string& path, Json& body) {
  const InterruptScope uninterrupted{std::stop_token()};
  return Put({.method = "PUT", .path = path}, Kind::kIndex, body);
}

Status Target::TryDocuments(const std::string& index, const std::vector<Sample>& documents) {
  if (documents.empty()) return {};
  std::string lines;
  for (const Sample& document : documents) {
    std::string line = document.body;
    // Line ends are only outside of strings.
    std::replace(line.begin(), line.end(), '\n', ' ');
    std::replace(line.begin(), line.end(), '\r', ' ');
    // As a migration would send it: a mapping may require routing.
    Json action = Json::object();
    if (!document.id.empty()) action["_id"] = document.id;
    if (!document.routing.empty()) action["routing"] = document.routing;
    lines += ToJsonText(Json{{"index", std::move(action)}}) + "\n" + line + "\n";
  }
  MUSTER_ASSIGN(const Json answer,
                client_.SendForJson({.method = "POST",
                                     .path = PathOf(Kind::kIndex, index) + "/_bulk",
                                     .body = lines,
                                     .content_type = "application/x-ndjson"}));
  size_t failed = 0;
  std::string first;
  for (const Json& item : MemberIn(answer, "items")) {
    const Json& error = MemberIn(MemberIn(item, "index"), "error");
    if (error.is_null()) continue;
    if (failed++ == 0) {
      first = TextIn(error, "reason");
      const std::string cause = TextIn(MemberIn(error, "caused_by"), "reason");
      if (!cause.empty()) first += ": " + cause;
    }
  }
  if (failed == 0) return {};
  return Error{Code::kInvalid, std::to_string(failed) + " of " + std::to_string(documents.size()) +
                                   " sampled documents do not fit its mapping: " + first};
}

Result<std::vector<std::string>> Target::TryTemplate(Kind kind, Json body) {
  Json simulated = Json::object();
  if (kind == Kind::kIndexTemplate) {
    simulated = body;
  } else {
    // As an index template that is composed of nothing else.
    simulated["index_patterns"] = Json::array({kTemporary + env_.NewId() + "-*"});
    simulated["priority"] = 1'000'000;
    Json& content = simulated["template"] = Json::object();
    const Json& own = std::as_const(ContentOf(kind, body));
    for (const char* part : {"settings", "mappings", "aliases"}) {
      if (own.contains(part)) content[part] = own[part];
    }
  }
  auto tried = Put({.method = "POST", .path = "/_index_template/_simulate", .writes = false},
                   Kind::kIndexTemplate, simulated);
  if (tried || !IsNoSuchApi(tried.error())) return tried;
  // Before Elasticsearch 7.9 there is no simulation.
  Json index = ContentOf(kind, body);
  if (!index.is_object()) index = Json::object();
  return TryIndex(
      Json{{"settings", index["settings"].is_object() ? index["settings"] : Json::object()},
           {"mappings", index["mappings"].is_object() ? index["mappings"] : Json::object()}},
      {});
}

Status Target::Undo(const std::string& index) {
  const InterruptScope uninterrupted{std::stop_token()};
  const auto deleted =
      client_.SendForJson({.method = "DELETE", .path = PathOf(Kind::kIndex, index)});
  if (deleted || deleted.error().code == Code::kNotFound) return {};
  return deleted.error();
}

Result<Json> Target::FromTemplates(const std::string& index) {
  const auto simulated =
      client_.SendForJson({.method = "POST",
                           .path = "/_index_template/_simulate_index/" + net::OpenSearchPath(index),
                           .writes = false});
  if (!simulated && !IsRefusal(simulated.error())) return simulated.error();
  const bool is_newer = simulated && MemberIn(*simulated, "template").is_object();
  if (is_newer) return Json(MemberIn(*simulated, "template"));
  // Older templates apply where no newer one does.
  const auto all = client_.SendForJson({.path = "/_template"});
  if (!all && !IsRefusal(all.error())) return all.error();
  return all ? MergedTemplates(index, *all) : Json();
}

Result<bool> Target::HasStreamTemplate(const std::string& name) {
  const auto all = client_.SendForJson({.path = "/_index_template"});
  if (!all) {
    if (IsRefusal(all.error())) return false;
    return all.error();
  }
  const Json* best = nullptr;
  for (const Json& entry : MemberIn(*all, "index_templates")) {
    const Json& body = MemberIn(entry, "index_template");
    if (!MatchesTemplate(name, body)) continue;
    if (best == nullptr || NumberIn(body, "priority") > NumberIn(*best, "priority")) best = &body;
  }
  return best != nullptr && MemberIn(*best, "data_stream").is_object();
}

void Target::Delete(const std::string& index, bool is_certain) {
  using namespace std::chrono_literals;
  constexpr int kTries = 10;
  for (int attempt = 1;; ++attempt) {
    const auto deleted =
        client_.SendForJson({.method = "DELETE", .path = PathOf(Kind::kIndex, index)});
    if (deleted) return;
    const bool is_gone = deleted.error().code == Code::kNotFound;
    if (is_gone && (is_certain || attempt == kTries)) return;
    if (attempt < kTries && env_.Sleep(300ms, {})) continue;
    Log(Level::kWarning, "a temporary index was not deleted",
        {{"index", index}, {"error", deleted.error().ToString()}});
    return;
  }
}

}  // namespace muster::metadata
