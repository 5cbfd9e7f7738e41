#include "replica/sqlite_model_transaction.h"

namespace muster::replica {

Result<SqliteModelConnection*> SqliteModelTransaction::Begin() {
  if (transaction_) return &**lease_;
  lease_.emplace(lender_.Take());
  auto begun = sql::SqliteTransaction::Begin((*lease_)->db());
  if (!begun) {
    lease_.reset();
    return begun.error();
  }
  transaction_.emplace(*std::move(begun));
  return &**lease_;
}

void SqliteModelTransaction::End() {
  transaction_.reset();
  lease_.reset();
}

Status SqliteModelTransaction::Commit() {
  if (!transaction_) return {};
  return transaction_->Commit();
}

Status SqliteModelTransaction::Execute(const std::string& sql, std::vector<SqlValue> params) {
  MUSTER_TRY(Query(sql, std::move(params)));
  return {};
}

Result<std::vector<std::vector<SqlValue>>> SqliteModelTransaction::Query(
    const std::string& sql, std::vector<SqlValue> params) {
  MUSTER_ASSIGN(SqliteModelConnection* const connection, Begin());
  MUSTER_ASSIGN(sql::SqliteStatement * statement, connection->Prepared(sql));
  for (size_t i = 0; i < params.size(); ++i) {
    const int parameter = statement->Parameter("$" + std::to_string(i + 1));
    if (parameter > 0) statement->BindAt(parameter, params[i]);
  }
  std::vector<std::vector<SqlValue>> rows;
  for (;;) {
    MUSTER_ASSIGN(const bool row, statement->Step());
    if (!row) break;
    std::vector<SqlValue>& values = rows.emplace_back();
    for (int column = 0; column < statement->columns(); ++column) {
      if (statement->IsNull(column)) {
        values.emplace_back();
      } else {
        values.emplace_back(std::string(statement->Text(column)));
      }
    }
  }
  statement->Reset();
  // Its changes would be committed without the checkpoint, or lost with it.
  if (!connection->db().InTransaction()) {
    return Error{Code::kInvalid, "a statement has ended the transaction: " + sql};
  }
  return rows;
}

}  // namespace muster::replica
