#include "pipeline/opensearch/opensearch_requests.h"

#include <algorithm>
#include <utility>

#include "core/backoff.h"
#include "core/interrupt.h"
#include "core/json_fields.h"
#include "core/log.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr int kTries = 8;
constexpr int kWorthSaying = 3;  // failed tries; one or two of a busy cluster are nothing unusual
constexpr Backoff::Pauses kPauses{.first = 200ms, .longest = 10s};
constexpr std::chrono::nanoseconds kLook = 250ms;  // for an interrupt

}  // namespace

bool PauseOrStop(Env& env, std::chrono::nanoseconds duration, const std::stop_token& stop) {
  for (auto left = duration; left > 0ns; left -= kLook) {
    if (Interrupted() || !env.Sleep(std::min(left, kLook), stop)) return false;
  }
  return !Interrupted() && !stop.stop_requested();
}

Result<net::OpenSearchAnswer> Ask(net::OpenSearchClient& client, Env& env,
                                  const net::OpenSearchCall& call, const std::stop_token& stop) {
  Backoff backoff(env, stop, kPauses);
  for (int attempt = 1;; ++attempt) {
    auto answer = client.Send(call, stop);
    std::chrono::nanoseconds wait = backoff.Next();
    Error error;
    if (!answer) {
      error = answer.error();
    } else if (answer->status < 300) {
      return answer;
    } else {
      error = client.ErrorOf(call, *answer);
      wait = std::max<std::chrono::nanoseconds>(wait, answer->retry_after.value_or(0ms));
    }
    if (error.code != Code::kUnavailable || attempt == kTries) return error;
    // A caller that watches this only sees a call that does not return.
    if (attempt == kWorthSaying) {
      Log(Level::kWarning, "waiting for a search cluster",
          {{"tries", attempt}, {"error", error.ToString()}});
    }
    if (!PauseOrStop(env, wait, stop)) {
      return Error{Code::kCancelled, "stopped while waiting for " + client.Place()};
    }
  }
}

Result<Json> AskForJson(net::OpenSearchClient& client, Env& env, const net::OpenSearchCall& call,
                        const std::stop_token& stop) {
  MUSTER_ASSIGN(const net::OpenSearchAnswer answer, Ask(client, env, call, stop));
  auto json = ParseJson(answer.body, client.Place(), {.bytes = answer.body.size(), .depth = 500});
  if (!json) return Error{Code::kInternal, json.error().message};
  return std::move(*json);
}

Result<Json> AboutCluster(net::OpenSearchClient& client, Env& env) {
  auto about = AskForJson(client, env, {.path = "/"});
  if (!about && IsTransient(about.error().code)) return about.error();
  return about ? *std::move(about) : Json();
}

Result<std::string> ClusterUuidIn(const net::OpenSearchClient& client, const Json& about) {
  const std::string uuid = TextIn(about, "cluster_uuid");
  if (uuid != "_na_") return uuid;
  return Error{Code::kUnavailable, client.Place() + " is still forming: it has no identity yet",
               "try again when it has elected its manager"};
}

std::string IndexUuidIn(const Json& settings, const std::string& index) {
  return TextIn(MemberIn(MemberIn(MemberIn(settings, index), "settings"), "index"), "uuid");
}

Error Unexpected(const net::OpenSearchClient& client, const std::string& what) {
  return Error{Code::kInternal, client.Place() + " answered a search with " + what};
}

}  // namespace muster::pipeline
