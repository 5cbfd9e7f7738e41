#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <string>

#include "core/mutex.h"
#include "muster/result.h"
#include "sql/sqlite.h"

namespace muster::replica {

// A connection to a read model's file, with its prepared statements.
class SqliteModelConnection {
 public:
  static Result<std::unique_ptr<SqliteModelConnection>> Open(const std::string& path,
                                                             const std::string& space);

  // A cached prepared statement. Own: `$_` in it is the namespace.
  Result<sql::SqliteStatement*> Prepared(const std::string& sql);
  Result<sql::SqliteStatement*> Own(const std::string& sql);

  sql::SqliteDb& db() { return *db_; }

 private:
  SqliteModelConnection(std::string space, std::unique_ptr<sql::SqliteDb> db)
      : space_(std::move(space)), db_(std::move(db)) {}

  const std::string space_;
  std::unique_ptr<sql::SqliteDb> db_;
  std::map<std::string, sql::SqliteStatement> statements_;  // destroyed before the database
};

// Lends its one connection to one user at a time. Thread-safe. Must outlive the leases.
class SqliteModelLender {
 public:
  explicit SqliteModelLender(std::unique_ptr<SqliteModelConnection> connection)
      : connection_(std::move(connection)) {}

  // Returns the connection when destroyed.
  class Lease {
   public:
    Lease(SqliteModelLender& lender, std::unique_ptr<SqliteModelConnection> connection)
        : lender_(&lender), connection_(std::move(connection)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (connection_) lender_->Return(std::move(connection_));
    }
    SqliteModelConnection* operator->() const { return connection_.get(); }
    SqliteModelConnection& operator*() const { return *connection_; }

   private:
    SqliteModelLender* lender_;
    std::unique_ptr<SqliteModelConnection> connection_;
  };

  // Waits until it is free.
  Lease Take();

 private:
  void Return(std::unique_ptr<SqliteModelConnection> connection);

  Mutex mutex_;
  std::condition_variable_any returned_;
  std::unique_ptr<SqliteModelConnection> connection_ GUARDED_BY(mutex_);  // null: lent
};

}  // namespace muster::replica
