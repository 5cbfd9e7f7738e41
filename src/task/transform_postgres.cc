#include "base/postgres.h"
#include "base/postgres_copy.h"
#include "pipeline/postgres_table.h"
#include "task/transform_target.h"

namespace muster::task {
namespace {

constexpr size_t kSendBytes = size_t{256} << 10;
// Of one statement: loading millions of rows into a table with indexes takes its time.
constexpr std::chrono::hours kStatementTime{4};

// A value in COPY's text format.
void AppendCopyValue(std::string& line, const DuckValue& value) {
  const auto* text = std::get_if<std::string_view>(&value);
  if (text == nullptr) {
    line += "\\N";
    return;
  }
  for (const char c : *text) {
    switch (c) {
      case '\\':
        line += "\\\\";
        break;
      case '\t':
        line += "\\t";
        break;
      case '\n':
        line += "\\n";
        break;
      case '\r':
        line += "\\r";
        break;
      default:
        line += c;
    }
  }
}

Error Named(const Error& error) {
  if (error.message.find("[23503]") == std::string::npos) return error;
  return Error{Code::kConflict, std::string(kForeignKeyViolated) + error.message, kForeignKeyHint};
}

class PostgresTarget : public TransformTarget {
 public:
  explicit PostgresTarget(std::unique_ptr<PgConnection> connection)
      : connection_(std::move(connection)) {}

  Result<TargetTable> Describe(const std::string& schema, const std::string& table) override {
    MUSTER_ASSIGN(const PgTable found, DescribePgTable(*connection_, {schema, table}));
    TargetTable target{.name = schema.empty() ? table : schema + "." + table,
                       .sql = found.sql_name,
                       .columns = {},
                       .key = found.key};
    for (const auto& column : found.columns) {
      if (!column.generated) target.columns.push_back(column.name);
    }
    return target;
  }

  // By way of a table of the session's own: COPY cannot replace rows.
  Status Load(DuckDb& db, const RowsToLoad& rows, const TargetTable& table,
              const std::stop_token& stop) override {
    if (!begun_) MUSTER_TRY(Say("BEGIN"));
    begun_ = true;
    const std::string columns = ColumnList(rows.columns, PgIdentifier);
    MUSTER_TRY(Say("CREATE TEMPORARY TABLE muster_load ON COMMIT DROP AS SELECT " + columns +
                   " FROM " + table.sql + " WITH NO DATA"));
    MUSTER_ASSIGN(PgCopyIn copy,
                  PgCopyIn::Start(*connection_, "COPY muster_load (" + columns + ") FROM STDIN"));
    MUSTER_TRY(copy.Ready());
    if (Status sent = Send(db, rows, copy, stop); !sent) {
      static_cast<void>(copy.Abandon("the rows cannot be read"));
      return sent;
    }
    MUSTER_ASSIGN(const auto refusal, copy.End());
    if (refusal) return Error{Code::kInvalid, table.name + ": " + refusal->message};
    MUSTER_TRY(Say("INSERT INTO " + table.sql + " (" + columns + ") SELECT " + columns +
                   " FROM muster_load" + UpsertClause(rows, table, PgIdentifier)));
    return Say("DROP TABLE muster_load");
  }

  Status Commit() override {
    if (!begun_) return {};
    const PgStatement commit{.name = "", .sql = "COMMIT", .writes = true};
    auto committed = connection_->Execute(commit, PgParams());
    return committed ? Status() : Status(Named(committed.error()));
  }

 private:
  Status Say(std::string sql) {
    const PgStatement statement{.name = "", .sql = std::move(sql), .writes = false};
    auto said = connection_->Execute(statement, PgParams());
    return said ? Status() : Status(Named(said.error()));
  }

  static Status Send(DuckDb& db, const RowsToLoad& rows, PgCopyIn& copy,
                     const std::stop_token& stop) {
    std::string lines;
    const auto add = [&](std::span<const DuckValue> values) -> Status {
      for (size_t i = 0; i < values.size(); ++i) {
        if (i > 0) lines += '\t';
        AppendCopyValue(lines, values[i]);
      }
      lines += '\n';
      if (lines.size() < kSendBytes) return {};
      MUSTER_TRY(copy.Send(lines));
      lines.clear();
      return {};
    };
    MUSTER_TRY(ForEachRow(db, rows, ColumnAsText, stop, add));
    return copy.Send(lines);
  }

  const std::unique_ptr<PgConnection> connection_;
  bool begun_ = false;
};

}  // namespace

Result<std::unique_ptr<TransformTarget>> OpenPostgresTarget(const std::string& uri) {
  MUSTER_ASSIGN(auto connection, PgConnection::Open({.uri = uri, .call_timeout = kStatementTime}));
  return std::make_unique<PostgresTarget>(std::move(connection));
}

}  // namespace muster::task
