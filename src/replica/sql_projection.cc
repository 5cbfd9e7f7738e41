#include "replica/sql_projection.h"

#include "core/json.h"
#include "core/json_fields.h"
#include "replica/sql_template.h"
#include "sql/postgres.h"

namespace muster::replica {
namespace {

using Templates = std::vector<SqlTemplate>;

struct Statements {
  Templates setup;
  Templates clear;
  std::map<std::string, Templates, std::less<>> on;
};

Result<Templates> ParseAll(const std::vector<std::string>& texts,
                           const std::vector<std::string>& tables, const std::string& where,
                           bool with_event) {
  Templates templates;
  for (const std::string& text : texts) {
    auto parsed = SqlTemplate::Parse(text, tables);
    if (!parsed) return parsed.error().Within(where);
    if (!with_event && parsed->TakesEvent()) {
      return Error{Code::kInvalid,
                   where + ": placeholders are not allowed here: there is no event"};
    }
    templates.push_back(*std::move(parsed));
  }
  return templates;
}

// The statements of one version.
class SqlProcessor final : public Processor {
 public:
  SqlProcessor(const Statements& statements, int version) : statements_(statements) {
    for (const auto& [type, templates] : statements.on) {
      for (const SqlTemplate& statement : templates) sql_[type].push_back(statement.Sql(version));
    }
  }

  Status Handle(std::span<const events::Event> events, Transaction& transaction) override {
    for (const events::Event& event : events) {
      auto found = statements_.on.find(event.type);
      if (found == statements_.on.end()) found = statements_.on.find("*");
      if (found == statements_.on.end()) continue;
      const std::vector<std::string>& sql = sql_.at(found->first);
      for (size_t i = 0; i < sql.size(); ++i) {
        MUSTER_ASSIGN(auto values, found->second[i].Values(event));
        MUSTER_TRY(transaction.Execute(sql[i], std::move(values)));
      }
    }
    return {};
  }

 private:
  const Statements& statements_;
  std::map<std::string, std::vector<std::string>> sql_;
};

class SqlProjection final : public Projection {
 public:
  SqlProjection(const SqlProjectionSpec& spec, SqlDialect dialect, Statements statements)
      : spec_(spec),
        name_(spec.name),
        tables_(spec.tables),
        dialect_(dialect),
        statements_(std::move(statements)) {}

  const std::string& name() const override { return name_; }

  std::string Definition() const override {
    return ToJsonText(Json{{"tables", spec_.tables},
                           {"setup", spec_.setup},
                           {"clear", spec_.clear},
                           {"on", spec_.on}});
  }

  Result<std::shared_ptr<Projection>> WithDefinition(const std::string& definition) const override {
    SqlProjectionSpec spec{.name = name_};
    JsonFields fields(Json::parse(definition, nullptr, /*throws=*/false));
    fields.Need("tables", spec.tables)
        .Need("setup", spec.setup)
        .Need("clear", spec.clear)
        .Need("on", spec.on);
    MUSTER_TRY(fields.Check("the definition of projection '" + name_ + "'"));
    auto made = NewSqlProjection(spec, dialect_);
    if (made) return made;
    return Error{
        made.error().code,
        "the definition that projection '" + name_ + "' is run by: " + made.error().message,
        "replace it by that of the file, with 'muster replica adopt' or 'rebuild'"};
  }

  Result<std::unique_ptr<Processor>> Build(const ReplicaPartition& partition) override {
    return std::make_unique<SqlProcessor>(statements_, partition.version);
  }

  Status SetUp(Transaction& transaction, int version) override {
    if (version > 1 && tables_.empty()) return NoVersions();
    MUSTER_TRY(LockSetUp(transaction));
    for (const SqlTemplate& statement : statements_.setup) {
      MUSTER_TRY(transaction.Execute(statement.Sql(version)));
    }
    // Readers see the first version until another is activated.
    if (version != 1) return {};
    for (const std::string& table : tables_) {
      MUSTER_ASSIGN(const auto views, transaction.Query(ViewExists(), {table}));
      if (!views.empty()) continue;
      MUSTER_TRY(transaction.Execute(CreateView(table, version)));
    }
    return {};
  }

  Status Clear(Transaction& transaction, int version) override {
    for (const SqlTemplate& statement : statements_.clear) {
      MUSTER_TRY(transaction.Execute(statement.Sql(version)));
    }
    if (!statements_.clear.empty()) return {};
    if (tables_.empty()) {
      return Error{Code::kInvalid, "projection '" + name_ + "' has no statements that clear it",
                   "list its 'tables', or give statements under 'clear'"};
    }
    if (dialect_ == SqlDialect::kSqlite) {
      for (const std::string& table : tables_) {
        MUSTER_TRY(transaction.Execute("DELETE FROM " + VersionedTable(table, version)));
      }
      return {};
    }
    // In one statement: the tables may reference each other.
    std::string all;
    for (const std::string& table : tables_) {
      all += (all.empty() ? "" : ", ") + VersionedTable(table, version);
    }
    return transaction.Execute("TRUNCATE " + all);
  }

  Status Activate(Transaction& transaction, int version) override {
    if (tables_.empty()) return NoVersions();
    MUSTER_TRY(LockSetUp(transaction));
    for (const std::string& table : tables_) {
      MUSTER_TRY(transaction.Execute("DROP VIEW IF EXISTS " + sql::PgIdentifier(table)));
      MUSTER_TRY(transaction.Execute(CreateView(table, version)));
    }
    return {};
  }

  Status Deactivate(Transaction& transaction, int /*version*/) override {
    MUSTER_TRY(LockSetUp(transaction));
    for (const std::string& table : tables_) {
      MUSTER_TRY(transaction.Execute("DROP VIEW IF EXISTS " + sql::PgIdentifier(table)));
    }
    return {};
  }

  Status Drop(Transaction& transaction, int version) override {
    for (const std::string& table : tables_) {
      MUSTER_TRY(transaction.Execute("DROP TABLE IF EXISTS " + VersionedTable(table, version)));
    }
    return {};
  }

 private:
  Error NoVersions() const {
    return {Code::kInvalid,
            "projection '" + name_ + "' lists no tables, so it cannot have several versions",
            "list them under 'tables', and write {NAME} for them in its statements"};
  }

  // PostgreSQL's IF NOT EXISTS fails on concurrent creation.
  Status LockSetUp(Transaction& transaction) const {
    if (dialect_ == SqlDialect::kSqlite) return {};
    return transaction.Execute(
        "SELECT pg_advisory_xact_lock(hashtextextended('muster projection ' || $1::text, 0))",
        {name_});
  }

  std::string ViewExists() const {
    if (dialect_ == SqlDialect::kSqlite) {
      return "SELECT 1 FROM sqlite_schema WHERE type = 'view' AND name = $1";
    }
    return "SELECT 1 FROM pg_catalog.pg_class WHERE relkind = 'v' AND relname = $1::text AND "
           "pg_catalog.pg_table_is_visible(oid)";
  }

  static std::string CreateView(const std::string& table, int version) {
    return "CREATE VIEW " + sql::PgIdentifier(table) + " AS SELECT * FROM " +
           VersionedTable(table, version);
  }

  const SqlProjectionSpec spec_;
  const std::string name_;
  const std::vector<std::string> tables_;
  const SqlDialect dialect_;
  const Statements statements_;
};

}  // namespace

Result<std::shared_ptr<Projection>> NewSqlProjection(const SqlProjectionSpec& spec,
                                                     SqlDialect dialect) {
  Statements statements;
  MUSTER_ASSIGN(statements.setup, ParseAll(spec.setup, spec.tables, "setup", false));
  MUSTER_ASSIGN(statements.clear, ParseAll(spec.clear, spec.tables, "clear", false));
  for (const auto& [type, texts] : spec.on) {
    MUSTER_ASSIGN(statements.on[type], ParseAll(texts, spec.tables, "on " + type, true));
  }
  return std::make_shared<SqlProjection>(spec, dialect, std::move(statements));
}

}  // namespace muster::replica
