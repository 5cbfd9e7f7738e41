#include "store/postgres_pool.h"

namespace muster {

PostgresPool::PostgresPool(PgOptions options, size_t max_connections)
    : options_(std::move(options)), max_connections_(max_connections) {}

Result<PostgresPool::Lease> PostgresPool::Take() {
  {
    std::unique_lock lock(mutex_);
    if (!returned_.wait_for(lock, options_.call_timeout,
                            [&] { return lent_ < max_connections_; })) {
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

std::unique_ptr<PgConnection> PostgresPool::TakeIdle() {
  std::lock_guard lock(mutex_);
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
    std::lock_guard lock(mutex_);
    --lent_;
    if (connection && !connection->lost()) idle_.push_back(std::move(connection));
  }
  returned_.notify_one();
}

}  // namespace muster
