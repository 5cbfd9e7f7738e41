#include "task/call/sql_executor.h"

#include <chrono>
#include <string>

#include "core/secrets.h"
#include "task/background.h"
#include "task/call/sql_call.h"
#include "task/parameters.h"
#include "task/secret_references.h"

namespace muster::task {
namespace {

constexpr size_t kMaxResultBytes = size_t{256} << 10;
constexpr std::string_view kSqlite = "sqlite:";

Error Wrong(const std::string& what) { return Error{Code::kInvalid, "muster:sql: " + what}; }

Result<SqlCall> ReadCall(const states::TaskCall& call) {
  const Json& input = call.input;
  if (!input.is_object()) return Wrong("its parameters must be an object");
  for (const auto& [name, value] : input.items()) {
    const bool known =
        name == "Database" || name == "Query" || name == "Execute" || name == "Parameters";
    if (!known) return Wrong("there is no parameter " + name);
    if (name == "Parameters" ? !value.is_array() : !value.is_string()) {
      return Wrong(name + " must be " + (name == "Parameters" ? "an array" : "a string"));
    }
  }
  if (!input.contains("Database")) return Wrong("Database says which one");
  if (input.contains("Query") == input.contains("Execute")) {
    return Wrong("either Query or Execute says what to do");
  }
  SqlCall sql;
  const std::string database = input["Database"];
  MUSTER_TRY(CheckReferences(call, "/Database", database));
  MUSTER_ASSIGN(sql.place, ResolveReferences(call, "/Database", database));
  sql.sql = input.contains("Query") ? input["Query"] : input["Execute"];
  sql.parameters = input.value("Parameters", Json::array());
  sql.token = call.token;
  if (call.timeout) sql.timeout = *call.timeout;
  return sql;
}

Result<Json> Run(SqlCall call, bool reads) {
  const bool sqlite = call.place.starts_with(kSqlite);
  if (sqlite) {
    call.place.erase(0, kSqlite.size());
  } else if (!call.place.starts_with("postgresql:") && !call.place.starts_with("postgres:")) {
    return Wrong("Database must begin with sqlite: or postgresql:");
  }
  if (reads) {
    MUSTER_ASSIGN(Json rows, sqlite ? QuerySqlite(call) : QueryPostgres(call));
    const size_t count = rows.size();
    return Json{{"Rows", std::move(rows)}, {"RowCount", count}};
  }
  MUSTER_ASSIGN(const int64_t changed, sqlite ? ExecuteSqlite(call) : ExecutePostgres(call));
  return Json{{"RowCount", changed}};
}

class SqlExecutor : public states::TaskExecutor {
 public:
  bool Runs(std::string_view resource) const override { return resource == "muster:sql"; }

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override {
    const auto sql = ReadCall(call);
    if (!sql) return states::TaskFailure{"States.Runtime", sql.error().ToString()};
    const bool reads = call.input.contains("Query");
    const auto start = std::chrono::steady_clock::now();
    auto result =
        InBackground(call, context, [&](const std::stop_token&) { return Run(*sql, reads); });
    if (!result) {
      if (IsTimeUp(call, start)) return TimedOut();
      if (result.error().code == Code::kFull && reads) {
        return states::TaskFailure{"States.DataLimitExceeded", result.error().ToString()};
      }
      return states::TaskFailure{FailureName("Sql", result.error().code),
                                 Redact(result.error().ToString())};
    }
    if (ToJsonText(*result).size() > kMaxResultBytes) {
      return states::TaskFailure{"States.DataLimitExceeded", "the rows are more than 256 KiB"};
    }
    return states::TaskSuccess{*std::move(result)};
  }

  states::TaskOutcome Poll(const states::TaskCall& call, const Json& /*resume*/,
                           states::TaskContext& context) override {
    return Start(call, context);
  }

  void Cancel(const states::TaskCall& /*call*/, const Json& /*resume*/,
              states::TaskContext& /*context*/) override {}
};

}  // namespace

std::unique_ptr<states::TaskExecutor> MakeSqlExecutor() { return std::make_unique<SqlExecutor>(); }

}  // namespace muster::task
