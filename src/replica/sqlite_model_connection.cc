#include "replica/sqlite_model_connection.h"

#include "replica/sqlite_read_model_schema.h"

namespace muster::replica {
namespace {

constexpr std::chrono::milliseconds kBusyTimeout{10'000};
constexpr size_t kMaxStatements = 256;

}  // namespace

Result<std::unique_ptr<SqliteModelConnection>> SqliteModelConnection::Open(
    const std::string& path, const std::string& space) {
  MUSTER_ASSIGN(auto db,
                sql::SqliteDb::Open(path, sql::SqliteDb::Mode::kCreatePrivate, kBusyTimeout));
  MUSTER_TRY(sql::MigrateSqliteTables(*db, space, SqliteReadModelTables()));
  return std::unique_ptr<SqliteModelConnection>(new SqliteModelConnection(space, std::move(db)));
}

Result<sql::SqliteStatement*> SqliteModelConnection::Prepared(const std::string& sql) {
  const auto found = statements_.find(sql);
  if (found != statements_.end()) return &found->second;
  if (statements_.size() >= kMaxStatements) statements_.clear();
  MUSTER_ASSIGN(sql::SqliteStatement statement, db_->Prepare(sql));
  return &(statements_[sql] = std::move(statement));
}

Result<sql::SqliteStatement*> SqliteModelConnection::Own(const std::string& sql) {
  return Prepared(sql::InSqliteSpace(sql, space_));
}

SqliteModelLender::Lease SqliteModelLender::Take() {
  MutexLock lock(mutex_);
  while (!connection_) returned_.wait(lock);
  return Lease(*this, std::move(connection_));
}

void SqliteModelLender::Return(std::unique_ptr<SqliteModelConnection> connection) {
  const MutexLock lock(mutex_);
  connection_ = std::move(connection);
  returned_.notify_one();
}

}  // namespace muster::replica
