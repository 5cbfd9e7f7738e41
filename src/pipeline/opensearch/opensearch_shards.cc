#include "pipeline/opensearch/opensearch_shards.h"

#include <algorithm>

#include "core/json_fields.h"
#include "core/number.h"
#include "pipeline/opensearch/opensearch_requests.h"

namespace muster::pipeline {

Result<std::string> OpenSearchShards::Uuid(const std::string& collection,
                                           const std::stop_token& stop) {
  const std::string path = "/" + net::OpenSearchPath(collection);
  auto settings = AskForJson(client_, env_, {.path = path + "/_settings/index.uuid"}, stop);
  if (!settings && settings.error().code == Code::kNotFound) {
    // A cluster that has just started knows no index yet, and looks a name up before it refuses to
    // answer; with a pattern it refuses, which is waited for.
    const Error gone = settings.error();
    settings = AskForJson(client_, env_, {.path = path + "*/_settings/index.uuid"}, stop);
    if (settings && !settings->contains(collection)) return gone;
  }
  if (!settings) {
    if (settings.error().code == Code::kPermission) return std::string();
    return settings.error();
  }
  return IndexUuidIn(*settings, collection);
}

Status OpenSearchShards::CheckUuid(const std::string& collection, const std::string& uuid,
                                   const std::stop_token& stop) {
  if (uuid.empty()) return {};
  MUSTER_ASSIGN(const std::string now, Uuid(collection, stop));
  if (now.empty() || now == uuid) return {};
  return Error{Code::kCorrupt,
               client_.Place() + ": index " + collection +
                   " was deleted and created again since its migration began",
               "the target may have documents of both: migrate it again, into an empty target and "
               "with a new run"};
}

Result<std::map<int, ShardState>> OpenSearchShards::Of(const std::string& collection) {
  MUSTER_ASSIGN(const Json stats, AskForJson(client_, env_,
                                             {.path = "/" + net::OpenSearchPath(collection) +
                                                      "/_stats/docs,store?level=shards"}));
  std::map<int, ShardState> shards;
  // Only started shards are listed.
  if (!MemberIn(MemberIn(stats, "indices"), collection).is_object()) {
    return Unavailable(collection, "no shard is started at the moment");
  }
  try {
    for (const auto& [number, copies] : stats.at("indices").at(collection).at("shards").items()) {
      const auto primary = std::find_if(copies.begin(), copies.end(), [](const Json& copy) {
        return copy.at("routing").at("primary").template get<bool>();
      });
      if (primary == copies.end()) {
        return Unavailable(collection, "shard " + number + " has no primary at the moment");
      }
      ShardState shard{.documents = primary->at("docs").at("count").get<int64_t>(),
                       .bytes = primary->at("store").at("size_in_bytes").get<int64_t>()};
      if (primary->contains("seq_no")) {
        const Json& numbers = primary->at("seq_no");
        shard.is_numbered = true;
        shard.checkpoint = numbers.at("global_checkpoint").get<int64_t>();
        shard.last = numbers.at("max_seq_no").get<int64_t>();
      }
      const auto shard_number = ParseNumber<int>(number);
      if (!shard_number) return Unexpected(client_, "a shard with the number '" + number + "'");
      shards.emplace(*shard_number, shard);
    }
  } catch (const std::exception& problem) {
    return Unexpected(client_, std::string("no shard statistics: ") + problem.what());
  }
  return shards;
}

Result<DocumentCount> OpenSearchShards::Count(const std::string& collection,
                                              std::optional<int> shard) {
  MUSTER_ASSIGN(
      const Json answer,
      AskForJson(client_, env_,
                 {.path = "/" + net::OpenSearchPath(collection) + "/_count" +
                          (shard ? "?preference=_shards:" + std::to_string(*shard) : "")}));
  const int64_t count = NumberIn(answer, "count", -1);
  if (count < 0) return Unexpected(client_, "no count");
  // A partial count must not pass for the total.
  const Json& shards = MemberIn(answer, "_shards");
  const int64_t total = NumberIn(shards, "total");
  const int64_t answered = NumberIn(shards, "successful");
  if (answered != total || total < 1) {
    return Unavailable(
        collection, std::to_string(answered) + " of " + std::to_string(total) + " shards answer");
  }
  return DocumentCount{count, static_cast<size_t>(total)};
}

Status OpenSearchShards::Refresh(const std::string& collection) {
  MUSTER_TRY(AskForJson(client_, env_,
                        {.method = "POST",
                         .path = "/" + net::OpenSearchPath(collection) + "/_refresh",
                         .writes = false}));
  return {};
}

Result<bool> OpenSearchShards::HasUnnumbered(const std::string& collection,
                                             const std::map<int, ShardState>& shards) {
  for (const auto& [number, shard] : shards) {
    if (!shard.is_numbered) return true;
  }
  const Json without{{"must_not", {{{"range", {{"_seq_no", {{"gte", 0}}}}}}}}};
  MUSTER_ASSIGN(const Json answer,
                AskForJson(client_, env_,
                           {.method = "POST",
                            .path = "/" + net::OpenSearchPath(collection) + "/_count",
                            .body = ToJsonText({{"query", {{"bool", without}}}}),
                            .writes = false}));
  return NumberIn(answer, "count") > 0;
}

Error OpenSearchShards::Unavailable(const std::string& collection, const std::string& what) const {
  return Error{Code::kUnavailable, client_.Place() + ": " + collection + ": " + what,
               "bring the cluster out of status red first"};
}

}  // namespace muster::pipeline
