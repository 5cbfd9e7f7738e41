#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/json.h"
#include "core/record_version.h"
#include "muster/result.h"

namespace muster::task {

constexpr int64_t kMaxSqlRows = 10'000;

// The table in which a database keeps which calls it has executed, and how many rows they changed.
inline constexpr RecordFormat kTaskFormat{"muster_task", 1};

// One statement for one database.
struct SqlCall {
  bool sqlite = false;
  std::string place;  // SQLite: the path; PostgreSQL: the URI; secrets expanded
  std::string sql;
  Json parameters = Json::array();
  std::string token;
  std::chrono::milliseconds timeout{600'000};
};

// The rows of a query, as objects: at most kMaxSqlRows, or one more if there are more.
Result<Json> QuerySqlite(const SqlCall& call);
Result<Json> QueryPostgres(const SqlCall& call);

// The number of rows changed. Executed once per token.
Result<int64_t> ExecuteSqlite(const SqlCall& call);
Result<int64_t> ExecutePostgres(const SqlCall& call);

}  // namespace muster::task
