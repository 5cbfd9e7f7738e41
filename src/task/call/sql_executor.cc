#include "task/call/sql_executor.h"

#include <string>

#include "core/interrupt.h"
#include "task/background.h"
#include "task/call/sql_call.h"
#include "task/secret_references.h"

namespace muster::task {
namespace {

constexpr size_t kMaxResultBytes = size_t{256} << 10;
constexpr std::string_view kSqlite = "sqlite:";

Error Wrong(const std::string& what) { return Error{Code::kInvalid, "muster:sql: " + what}; }

Result<SqlCall> ReadCall(const states::TaskCall& call) {
  const Json& input = call.input;
  if (!input.is_object()) return Wrong("parameters must be an object");
  for (const auto& [name, value] : input.items()) {
    const bool known =
        name == "Database" || name == "Query" || name == "Execute" || name == "Parameters";
    if (!known) return Wrong("unknown parameter " + name);
    if (name == "Parameters" ? !value.is_array() : !value.is_string()) {
      return Wrong(name + " must be " + (name == "Parameters" ? "an array" : "a string"));
    }
  }
  if (!input.contains("Database")) return Wrong("Database is missing");
  if (input.contains("Query") == input.contains("Execute")) {
    return Wrong("needs either Query or Execute");
  }
  SqlCall sql;
  const std::string database = input["Database"];
  MUSTER_TRY(CheckReferences(call, "/Database", database));
  MUSTER_ASSIGN(sql.place, ResolveReferences(call, "/Database", database));
  sql.sqlite = sql.place.starts_with(kSqlite);
  if (sql.sqlite) {
    sql.place.erase(0, kSqlite.size());
  } else if (!sql.place.starts_with("postgresql:") && !sql.place.starts_with("postgres:")) {
    return Wrong("Database must begin with sqlite: or postgresql:");
  }
  sql.sql = input.contains("Query") ? input["Query"] : input["Execute"];
  sql.parameters = input.value("Parameters", Json::array());
  sql.token = call.token;
  if (call.timeout) sql.timeout = *call.timeout;
  return sql;
}

states::TaskFailure TooMuch(const char* cause) { return {"States.DataLimitExceeded", cause}; }

Result<states::TaskOutcome> Query(const SqlCall& call, const std::stop_token& stop) {
  const InterruptScope interrupt(stop);
  MUSTER_ASSIGN(Json rows, call.sqlite ? QuerySqlite(call) : QueryPostgres(call));
  const auto count = static_cast<int64_t>(rows.size());
  if (count > kMaxSqlRows) return states::TaskOutcome(TooMuch("more than 10,000 rows"));
  Json result{{"Rows", std::move(rows)}, {"RowCount", count}};
  if (ToJsonText(result).size() > kMaxResultBytes) {
    return states::TaskOutcome(TooMuch("the rows take more than 256 KiB"));
  }
  return states::TaskOutcome(states::TaskSuccess{std::move(result)});
}

// Not interrupted: a commit that is cut off leaves its outcome unknown.
Result<states::TaskOutcome> Execute(const SqlCall& call, states::TaskContext& context,
                                    const std::stop_token& stop) {
  const OnWait say = [&context](const std::string& what) { context.WaitsFor(what); };
  MUSTER_ASSIGN(const int64_t changed, call.sqlite
                                           ? ExecuteSqlite(call)
                                           : ExecutePostgres(call, context.env(), say, stop));
  return states::TaskOutcome(states::TaskSuccess{Json{{"RowCount", changed}}});
}

class SqlExecutor final : public BlockingExecutor {
 public:
  SqlExecutor() : BlockingExecutor("Sql") {}

  bool Runs(std::string_view resource) const override { return resource == "muster:sql"; }

 protected:
  Result<Work> Prepare(const states::TaskCall& call, states::TaskContext& context) override {
    MUSTER_ASSIGN(SqlCall sql, ReadCall(call));
    const bool reads = call.input.contains("Query");
    return Work([sql = std::move(sql), reads, &context](const std::stop_token& stop) {
      return reads ? Query(sql, stop) : Execute(sql, context, stop);
    });
  }
};

}  // namespace

std::unique_ptr<states::TaskExecutor> MakeSqlExecutor() { return std::make_unique<SqlExecutor>(); }

}  // namespace muster::task
