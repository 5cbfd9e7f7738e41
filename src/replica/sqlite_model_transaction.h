#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/replica.h"
#include "replica/sqlite_model_connection.h"

namespace muster::replica {

// Holds the single connection from its first statement on.
class SqliteModelTransaction final : public Transaction {
 public:
  explicit SqliteModelTransaction(SqliteModelLender& lender) : lender_(lender) {}
  ~SqliteModelTransaction() override { End(); }

  Status Execute(const std::string& sql, std::vector<SqlValue> params) override;
  Result<std::vector<std::vector<SqlValue>>> Query(const std::string& sql,
                                                   std::vector<SqlValue> params) override;

  // The connection, once the transaction has begun.
  Result<SqliteModelConnection*> Begin();
  Status Commit();
  void End();  // rolls back unless committed

 private:
  SqliteModelLender& lender_;
  std::optional<SqliteModelLender::Lease> lease_;
  std::optional<sql::SqliteTransaction> transaction_;
};

}  // namespace muster::replica
