#include "pipeline/opensearch/opensearch_target.h"

#include <vector>

#include "core/json_fields.h"
#include "pipeline/opensearch/opensearch_requests.h"

namespace muster::pipeline {
namespace {

Error Refuse(const std::string& message, const std::string& hint) {
  return Error{Code::kInvalid, message, hint};
}

// Set while an index is closed, from Elasticsearch 7.2 on.
bool IsClosed(const Json& index) {
  const Json& settings = MemberIn(MemberIn(index, "settings"), "index");
  return TextIn(settings, "verified_before_close") == "true";
}

// Why documents cannot be written to this index; none: they can. `what` names it as the user did.
std::optional<Error> RefusalOf(const std::string& what, const Json& index) {
  if (IsOurStore(index)) {
    return Refuse(what + " is a Muster store: documents are never written to it",
                  "name another index in the sink's URL, or rename the collection (rename_index)");
  }
  if (IsClosed(index)) {
    return Refuse(what + " is closed and cannot be written to",
                  "open it first (POST /INDEX/_open), or name another index");
  }
  return std::nullopt;
}

OpenSearchTarget Chosen(const std::string& what, const std::string& name, const Json& index) {
  if (auto refusal = RefusalOf(what, index)) return {.refusal = std::move(refusal)};
  const Json& settings = MemberIn(MemberIn(index, "settings"), "index");
  return {.index = name, .uuid = TextIn(settings, "uuid")};
}

// An index behind an alias.
struct Behind {
  std::string name;
  const Json& about;
  std::optional<bool> takes_writes;  // is_write_index, if it is set
};

OpenSearchTarget BehindAlias(const std::string& alias, const std::vector<Behind>& indices) {
  const Behind* chosen = nullptr;
  if (indices.size() == 1 && indices[0].takes_writes.value_or(true)) chosen = &indices[0];
  std::string names;
  for (const Behind& one : indices) {
    names += (names.empty() ? "" : ", ") + one.name;
    if (one.takes_writes.value_or(false)) chosen = &one;
  }
  if (chosen != nullptr) {
    return Chosen("index '" + chosen->name + "', which alias '" + alias + "' writes to,",
                  chosen->name, chosen->about);
  }
  return {.refusal = Refuse("alias '" + alias + "' has no write index: it stands for " + names,
                            "set is_write_index for one of them (POST /_aliases), or name that "
                            "index in the sink's URL")};
}

}  // namespace

bool IsOurStore(const Json& index) {
  const Json& meta = MemberIn(MemberIn(index, "mappings"), "_meta");
  return meta.is_object() && meta.contains(net::kOpenSearchStoreMark);
}

OpenSearchTarget OpenSearchTarget::In(const Json& response, const std::string& name) {
  if (!response.is_object()) return {};
  std::vector<Behind> behind;
  bool is_stream = false;
  for (const auto& [index, about] : response.items()) {
    if (const std::string stream = TextIn(about, "data_stream"); !stream.empty()) {
      if (stream != name) {
        return {.refusal = Refuse("'" + name + "' is part of data stream '" + stream +
                                      "', which is written to by that name only",
                                  "name the data stream, or another index")};
      }
      // Documents are looked up in all of them.
      if (IsClosed(about)) {
        return {.refusal = Refuse("index '" + index + "' of data stream '" + stream + "' is closed",
                                  "open it first (POST /" + index +
                                      "/_open): what is written to "
                                      "the stream is compared with all of its indices")};
      }
      is_stream = true;
      continue;
    }
    if (index == name) return Chosen("index '" + name + "'", name, about);
    const Json& options = MemberIn(MemberIn(about, "aliases"), name);
    if (!options.is_object()) continue;
    const Json& writes = MemberIn(options, "is_write_index");
    behind.push_back(
        {index, about, writes.is_boolean() ? std::optional(writes.get<bool>()) : std::nullopt});
  }
  // Its indices have uuids; which of them there are changes.
  if (is_stream) return {.index = name, .uuid = "data stream " + name, .is_stream = true};
  return behind.empty() ? OpenSearchTarget{} : BehindAlias(name, behind);
}

net::OpenSearchCall OpenSearchTarget::Request(const std::string& name) {
  // Mappings may be large. Errors are filtered like everything else.
  return {.path = "/" + net::OpenSearchPath(name) +
                  "?filter_path=error,status,*.aliases,*.data_stream,*.mappings._meta,"
                  "*.settings.index.uuid,*.settings.index.verified_before_close"};
}

Result<std::optional<OpenSearchTarget>> OpenSearchTarget::Find(net::OpenSearchClient& client,
                                                               const std::string& name) {
  const auto response = client.SendForJson(Request(name));
  if (response) return std::optional(In(*response, name));
  if (response.error().code == Code::kNotFound) return std::optional<OpenSearchTarget>();
  return response.error();
}

Result<std::string> OpenSearchTables::IdOf(const std::string& uuid) {
  if (uuid.empty()) return std::string();
  const MutexLock lock(mutex_);
  if (!cluster_) {
    // Some users may not ask, and some services do not say. The index's own uuid is random, too.
    MUSTER_ASSIGN(const Json about, AboutCluster(client_, env_));
    MUSTER_ASSIGN(cluster_, ClusterUuidIn(client_, about));
  }
  return *cluster_ + "/" + uuid;
}

}  // namespace muster::pipeline
