#include "pipeline/opensearch/opensearch_shards.h"

#include <algorithm>
#include <chrono>

#include "core/json_fields.h"
#include "core/number.h"
#include "pipeline/opensearch/opensearch_requests.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestRefresh = 1s;  // how long one takes
constexpr auto kLongestInterval = 5min;

// Of a setting such as 500ms, 30s or 1m; none: it is longer than can be waited for, or -1.
std::optional<std::chrono::milliseconds> IntervalOf(const std::string& text) {
  if (text.empty()) return 1s;  // the default
  const size_t digits = text.find_first_not_of("0123456789");
  const auto number = ParseNumber<int64_t>(text.substr(0, digits));
  if (!number || digits == std::string::npos || *number > 1'000'000) return std::nullopt;
  const std::string unit = text.substr(digits);
  std::chrono::milliseconds interval{0};
  if (unit == "ms") interval = std::chrono::milliseconds(*number);
  if (unit == "s") interval = std::chrono::seconds(*number);
  if (unit == "m") interval = std::chrono::minutes(*number);
  if (interval == 0ms || interval > kLongestInterval) return std::nullopt;
  return interval;
}

}  // namespace

std::string FrozenParameter(const IndexState& state, char before) {
  return state.is_frozen ? before + std::string("ignore_throttled=false") : std::string();
}

Result<IndexState> OpenSearchShards::Describe(const std::string& index,
                                              const std::stop_token& stop) {
  constexpr const char* kSettings = "/_settings/index.uuid,index.frozen";
  const std::string path = "/" + net::OpenSearchPath(index);
  auto settings = AskForJson(client_, env_, {.path = path + kSettings}, stop);
  if (!settings && settings.error().code == Code::kNotFound) {
    // A cluster that has just started knows no index yet, and looks a name up before it refuses to
    // answer; with a pattern it refuses, which is waited for.
    const Error gone = settings.error();
    settings = AskForJson(client_, env_, {.path = path + "*" + kSettings}, stop);
    if (settings && !settings->contains(index)) return gone;
  }
  if (!settings) {
    if (settings.error().code == Code::kPermission) return IndexState();
    return settings.error();
  }
  const Json& own = MemberIn(MemberIn(MemberIn(*settings, index), "settings"), "index");
  return IndexState{.uuid = TextIn(own, "uuid"),
                    .is_frozen = TextIn(own, "frozen") == "true",
                    .is_index = settings->empty() || settings->contains(index)};
}

Result<IndexState> OpenSearchShards::CheckUuid(const std::string& index, const std::string& uuid,
                                               const std::stop_token& stop) {
  MUSTER_ASSIGN(IndexState now, Describe(index, stop));
  if (uuid.empty() || now.uuid.empty() || now.uuid == uuid) return now;
  return Error{Code::kCorrupt,
               client_.Place() + ": index " + index +
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
                                              const IndexState& state, std::optional<int> shard) {
  const std::string of_shard = shard ? "?preference=_shards:" + std::to_string(*shard) : "";
  MUSTER_ASSIGN(const Json answer,
                AskForJson(client_, env_,
                           {.path = "/" + net::OpenSearchPath(collection) + "/_count" + of_shard +
                                    FrozenParameter(state, shard ? '&' : '?')}));
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

Status OpenSearchShards::Refresh(const std::string& index, const std::stop_token& stop) {
  const auto done = AskForJson(
      client_, env_,
      {.method = "POST", .path = "/" + net::OpenSearchPath(index) + "/_refresh", .writes = false},
      stop);
  if (done) return {};
  if (done.error().code != Code::kPermission) return done.error();
  return AwaitRefresh(index, done.error(), stop);
}

// A search wakes up an index that no one searches; it then refreshes itself at its interval.
Status OpenSearchShards::AwaitRefresh(const std::string& index, const Error& refused,
                                      const std::stop_token& stop) {
  const std::string path = "/" + net::OpenSearchPath(index);
  MUSTER_ASSIGN(
      const Json settings,
      AskForJson(client_, env_,
                 {.path = path + "/_settings/index.refresh_interval?flat_settings=true"}, stop));
  const std::string text =
      TextIn(MemberIn(MemberIn(settings, index), "settings"), "index.refresh_interval");
  const auto interval = IntervalOf(text);
  if (!interval) {
    Error error = refused;
    error.message += "; and the index does not refresh itself often (refresh_interval " + text +
                     "), so its latest documents would be missed";
    error.hint = "give the user the right to refresh it (maintenance), or set refresh_interval";
    return error;
  }
  MUSTER_TRY(Ask(client_, env_,
                 {.method = "POST",
                  .path = path + "/_search?size=0",
                  .body = R"({"track_total_hits":false})",
                  .writes = false},
                 stop));
  if (PauseOrStop(env_, *interval + kLongestRefresh, stop)) return {};
  return Error{Code::kCancelled, "stopped while waiting for " + client_.Place()};
}

Result<bool> OpenSearchShards::HasUnnumbered(const std::string& collection, const IndexState& state,
                                             const std::map<int, ShardState>& shards) {
  for (const auto& [number, shard] : shards) {
    if (!shard.is_numbered) return true;
  }
  const Json without{{"must_not", {{{"range", {{"_seq_no", {{"gte", 0}}}}}}}}};
  MUSTER_ASSIGN(const Json answer, AskForJson(client_, env_,
                                              {.method = "POST",
                                               .path = "/" + net::OpenSearchPath(collection) +
                                                       "/_count" + FrozenParameter(state, '?'),
                                               .body = ToJsonText({{"query", {{"bool", without}}}}),
                                               .writes = false}));
  return NumberIn(answer, "count") > 0;
}

Error OpenSearchShards::Unavailable(const std::string& collection, const std::string& what) const {
  return Error{Code::kUnavailable, client_.Place() + ": " + collection + ": " + what,
               "bring the cluster out of status red first"};
}

}  // namespace muster::pipeline
