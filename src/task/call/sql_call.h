#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

#include "core/json.h"
#include "core/number.h"
#include "core/record_version.h"
#include "muster/env.h"
#include "muster/result.h"
#include "task/data/load_fence.h"

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

// The fence of a statement: that of a load whose call is the token without its retry count.
inline LoadFence FenceOf(const SqlCall& call) {
  const std::string all_tries = CallOfToken(call.token);
  return {.task = all_tries, .run = "muster:sql", .call = all_tries};
}

// What a fence keeps of a statement that was committed: the number of rows changed.
inline Result<int64_t> ChangedIn(const std::string& result) {
  const auto changed = ParseNumber<int64_t>(result);
  if (changed) return *changed;
  return Error{Code::kCorrupt, "the result of the call in muster_transform is not a number"};
}

// The number of rows changed. Executed once, however often the call is tried: a later try returns
// what an earlier one has committed. kLeaseLost: a later try has begun, and this one changed
// nothing. `stop` ends the wait for the session of an earlier try; a statement is not interrupted.
Result<int64_t> ExecuteSqlite(const SqlCall& call);
Result<int64_t> ExecutePostgres(const SqlCall& call, Env& env, const OnWait& say,
                                const std::stop_token& stop);

}  // namespace muster::task
