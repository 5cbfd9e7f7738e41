#include "sql/postgres_pool.h"

#include "core/backoff.h"
#include "core/mutex.h"

namespace muster::sql {
namespace {

using std::chrono::milliseconds;

// A call that was rolled back (a deadlock, a serialization failure) or never sent (the connection
// died while idle) is retried a few times within this time.
constexpr int kMaxTries = 4;
constexpr milliseconds kRetryFor{2'000};
constexpr milliseconds kRetryPause{20};

}  // namespace

PostgresPool::PostgresPool(PgOptions options, size_t max_connections)
    : options_(std::move(options)), max_connections_(max_connections) {}

Result<PostgresPool::Lease> PostgresPool::Take() {
  {
    MutexLock lock(mutex_);
    if (!returned_.wait_for(lock, options_.call_timeout,
                            [&]() REQUIRES(mutex_) { return lent_ < max_connections_; })) {
      return Error{Code::kUnavailable,
                   "all " + std::to_string(max_connections_) + " PostgreSQL connections are busy",
                   "run fewer threads in one process, or check the server's load"};
    }
    ++lent_;
  }
  while (auto idle = TakeIdle()) {
    if (idle->Usable()) return Lease(*this, std::move(idle));
  }
  auto opened = Open();
  if (opened) return Lease(*this, *std::move(opened));
  Return(nullptr);
  return std::move(opened).error();
}

Result<std::vector<PgResult>> PostgresPool::Run(std::span<const PgCall> calls, Env& env) {
  const MonoTime give_up = env.MonoNow() + kRetryFor;
  Backoff backoff(env, {}, {.first = kRetryPause});
  for (int tries = 1;; ++tries) {
    MUSTER_ASSIGN(auto connection, Take());
    auto results = connection->Execute(calls);
    if (results || results.error().code != Code::kUnavailable || tries == kMaxTries) return results;
    if (!backoff.PauseBefore(give_up)) return results;
  }
}

Result<PgResult> PostgresPool::Run(const PgStatement& statement, const PgParams& params, Env& env) {
  const PgCall call{statement, params};
  MUSTER_ASSIGN(auto results, Run({&call, 1}, env));
  return std::move(results.front());
}

std::unique_ptr<PgConnection> PostgresPool::TakeIdle() {
  const MutexLock lock(mutex_);
  if (idle_.empty()) return nullptr;
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

Result<std::unique_ptr<PgConnection>> PostgresPool::Open() const {
  MUSTER_ASSIGN(auto connection, PgConnection::Open(options_));
  static const PgStatement kDurable{"",
                                    "SELECT set_config('synchronous_commit', 'on', false)"
                                    " WHERE current_setting('synchronous_commit') = 'off'",
                                    false};
  MUSTER_TRY(connection->Execute(kDurable, PgParams()));
  return connection;
}

void PostgresPool::Return(std::unique_ptr<PgConnection> connection) {
  {
    const MutexLock lock(mutex_);
    --lent_;
    if (connection && !connection->lost()) idle_.push_back(std::move(connection));
  }
  returned_.notify_one();
}

}  // namespace muster::sql
