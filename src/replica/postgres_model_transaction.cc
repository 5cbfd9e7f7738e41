#include "replica/postgres_model_transaction.h"

#include "core/sha256.h"
#include "sql/postgres_schema.h"

namespace muster::replica {
namespace {

// The same text is prepared once per connection.
std::string NameOf(const std::string& sql, bool answers) {
  return (answers ? "q" : "x") + Sha256Hex(sql).substr(0, 40);
}

}  // namespace

PostgresModelTransaction::~PostgresModelTransaction() {
  if (begun_ && lease_) static_cast<void>(sql::RunPlain(**lease_, "ROLLBACK"));
}

Status PostgresModelTransaction::Execute(const std::string& sql, std::vector<SqlValue> params) {
  return Queue(sql, std::move(params), false);
}

Result<std::vector<std::vector<SqlValue>>> PostgresModelTransaction::Query(
    const std::string& sql, std::vector<SqlValue> params) {
  MUSTER_TRY(Queue(sql, std::move(params), true));
  if (!begun_) {
    if (idle_limit_.count() > 0) {
      waiting_.emplace_front(
          sql::PgStatement{"", "SET LOCAL idle_in_transaction_session_timeout = " +
                                   std::to_string(idle_limit_.count())});
    }
    waiting_.emplace_front(sql::PgStatement{"", "BEGIN"});
  }
  // Even on failure: then there is a transaction to roll back.
  begun_ = true;
  MUSTER_ASSIGN(const auto results, Send());
  const sql::PgResult& result = results.back();
  std::vector<std::vector<SqlValue>> rows;
  for (int row = 0; row < result.rows(); ++row) {
    std::vector<SqlValue>& values = rows.emplace_back();
    for (int column = 0; column < result.columns(); ++column) {
      if (result.IsNull(row, column)) {
        values.emplace_back();
      } else {
        values.emplace_back(std::string(result.Text(row, column)));
      }
    }
  }
  return rows;
}

Status PostgresModelTransaction::Commit() {
  if (begun_) waiting_.emplace_back(sql::PgStatement{"", "COMMIT"});
  if (waiting_.empty()) return {};
  auto sent = Send();
  if (!sent) return sent.error();
  begun_ = false;
  return {};
}

Status PostgresModelTransaction::Queue(const std::string& sql, std::vector<SqlValue> params,
                                       bool answers) {
  if (params.size() > sql::PgParams::kMax) {
    return Error{Code::kInvalid, "a statement has more than " +
                                     std::to_string(sql::PgParams::kMax) + " parameters"};
  }
  PostgresModelCall& call =
      waiting_.emplace_back(sql::PgStatement{NameOf(sql, answers), sql, true, true});
  for (SqlValue& value : params) {
    if (value) {
      call.params.Literal(call.texts.emplace_back(*std::move(value)));
    } else {
      call.params.Null();
    }
  }
  return {};
}

Result<std::vector<sql::PgResult>> PostgresModelTransaction::Send() {
  if (!lease_) {
    MUSTER_ASSIGN(sql::PostgresPool::Lease lease, pool_->Take());
    lease_.emplace(std::move(lease));
  }
  std::vector<sql::PgCall> calls;
  calls.reserve(waiting_.size());
  for (const PostgresModelCall& call : waiting_) calls.push_back({call.statement, call.params});
  (*lease_)->SetDeadline(deadline_);
  auto results = (*lease_)->Execute(calls);
  (*lease_)->SetDeadline(MonoTime::max());  // others use the connection after us
  waiting_.clear();
  return results;
}

}  // namespace muster::replica
