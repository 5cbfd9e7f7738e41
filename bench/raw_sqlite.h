#pragma once

#include <memory>
#include <string>

#include "side.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::bench {

struct CloseSqlite {
  void operator()(sqlite3* db) const;
  void operator()(sqlite3_stmt* statement) const;
};
using SqliteHandle = std::unique_ptr<sqlite3, CloseSqlite>;
using SqliteQuery = std::unique_ptr<sqlite3_stmt, CloseSqlite>;

// A connection as durable as the store's: WAL, synchronous=FULL.
SqliteHandle OpenSqlite(const std::string& path);
void ExecuteSqlite(sqlite3& db, const std::string& sql);
SqliteQuery PrepareSqlite(sqlite3& db, const std::string& sql);
bool StepSqlite(sqlite3_stmt& statement);  // whether there is a row

// What SQLite itself can do: a loop over two prepared statements, on one thread whatever the load
// asks for, since there is one writer at a time.
std::unique_ptr<Side> RawSqlite(const std::string& path, const std::string& space);

}  // namespace muster::bench
