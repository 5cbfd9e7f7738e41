#include "pipeline/postgres/postgres_snapshot.h"

#include "core/log.h"
#include "core/mutex.h"
#include "pipeline/postgres/postgres_session.h"

namespace muster::pipeline {
namespace {

constexpr const char* kBegin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

Result<std::vector<sql::PgResult>> BeginWith(sql::PgConnection& connection, std::string sql) {
  const sql::PgParams none = {};
  const sql::PgStatement begin{"", kBegin, false};
  const sql::PgStatement then{"", std::move(sql), false};
  const sql::PgCall calls[] = {{begin, none}, {then, none}};
  return connection.Execute(calls);
}

}  // namespace

Result<std::string> PostgresSnapshot::Id() {
  const MutexLock lock(mutex_);
  if (holder_ && holder_->Usable()) return id_;
  const bool lost = holder_ != nullptr;
  MUSTER_ASSIGN(holder_, OpenPgReadSession(uri_));
  auto exported = BeginWith(*holder_, "SELECT pg_export_snapshot()");
  if (!exported) {
    holder_.reset();
    return std::move(exported).error();
  }
  id_ = (*exported)[1].Text(0, 0);
  if (lost) {
    Log(Level::kWarning, "the server ended the source's snapshot: reading continues with a new one",
        {{"server", holder_->Place()}});
  }
  return id_;
}

Result<std::unique_ptr<sql::PgConnection>> PostgresSnapshot::OpenSession() {
  MUSTER_ASSIGN(const std::string id, Id());
  MUSTER_ASSIGN(auto connection, OpenPgReadSession(uri_));
  MUSTER_TRY(BeginWith(*connection, "SET TRANSACTION SNAPSHOT " + sql::PgLiteral(id)));
  return connection;
}

}  // namespace muster::pipeline
