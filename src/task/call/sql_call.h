#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/json.h"
#include "muster/result.h"

namespace muster::task {

constexpr int64_t kMaxSqlRows = 10'000;

// One statement for one database.
struct SqlCall {
  std::string place;  // of SQLite the path, of PostgreSQL the URI; secrets expanded
  std::string sql;
  Json parameters = Json::array();
  std::string token;
  std::chrono::milliseconds timeout{600'000};
};

// The rows of a query, as objects; kFull for more than kMaxSqlRows.
Result<Json> QuerySqlite(const SqlCall& call);
Result<Json> QueryPostgres(const SqlCall& call);

// How many rows a statement has changed. Happens once for a token.
Result<int64_t> ExecuteSqlite(const SqlCall& call);
Result<int64_t> ExecutePostgres(const SqlCall& call);

}  // namespace muster::task
