#include "events/postgres_connections.h"

#include "base/poll.h"

namespace muster {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxConnections = 64;
constexpr int kMaxTries = 4;
constexpr milliseconds kRetryFor{2'000};
constexpr milliseconds kRetryPause{20};
constexpr PollPauses kPolls{milliseconds(2), milliseconds(60)};

PgOptions SessionOptions(const std::string& uri) {
  PgOptions options;
  options.uri = uri;
  // Every query goes along an index whose best use does not depend on its parameters; what the
  // planner would guess from statistics of a growing log can only be worse.
  options.settings = {{"plan_cache_mode", "force_generic_plan"},
                      {"enable_seqscan", "off"},
                      {"enable_hashjoin", "off"},
                      {"enable_mergejoin", "off"},
                      {"enable_material", "off"},
                      {"jit", "off"},
                      {"default_transaction_isolation", "read committed"}};
  return options;
}

}  // namespace

PostgresConnections::PostgresConnections(const std::string& uri, Env& env)
    : env_(env), pool_(SessionOptions(uri), kMaxConnections) {}

Result<std::vector<PgResult>> PostgresConnections::Run(std::span<const PgCall> calls) {
  const MonoTime give_up = env_.MonoNow() + kRetryFor;
  for (int tries = 1;; ++tries) {
    MUSTER_ASSIGN(auto connection, pool_.Take());
    auto results = connection->Execute(calls);
    // kUnavailable promises that nothing was applied; anything else is final.
    if (results || results.error().code != Code::kUnavailable || tries == kMaxTries ||
        env_.MonoNow() >= give_up) {
      return results;
    }
    static_cast<void>(env_.Sleep(env_.Jitter(tries * kRetryPause), {}));
  }
}

Result<PgResult> PostgresConnections::Run(const PgStatement& statement, const PgParams& params) {
  const PgCall call{statement, params};
  MUSTER_ASSIGN(auto results, Run({&call, 1}));
  return std::move(results.front());
}

void PostgresConnections::AwaitBeyond(int64_t seen, const PgStatement& last, milliseconds timeout,
                                      std::stop_token stop) {
  const auto look = [&] {
    const auto answer = Run(last, PgParams());
    if (!answer || answer->Int64(0, 0) <= seen) return false;
    // What is there may not be settled yet: who asks again at once would only spin.
    env_.Sleep(kPolls.first, stop);
    return true;
  };
  PollUntil(look, env_, kPolls, timeout, stop);
}

}  // namespace muster
