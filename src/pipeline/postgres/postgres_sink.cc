#include "pipeline/postgres/postgres_sink.h"

#include <utility>

#include "core/mutex.h"
#include "pipeline/postgres/postgres_session.h"
#include "pipeline/postgres/postgres_writer.h"
#include "pipeline/table/table_params.h"
#include "pipeline/table/table_shape.h"
#include "sql/postgres_table.h"
#include "sql/postgres_uri.h"

namespace muster::pipeline {
namespace {

constexpr std::string_view kOwnParameters[] = {"schema", "documents", "misfits"};

std::string CreateTableSql(const sql::PgName& name, const TableShape& shape) {
  std::string sql = "CREATE TABLE IF NOT EXISTS " + name.Sql() + " (";
  for (const TableShape::Column& column : shape.columns) {
    if (&column != shape.columns.data()) sql += ", ";
    sql +=
        sql::PgIdentifier(column.name) + " " + column.type + (column.nullable ? "" : " NOT NULL");
  }
  for (const std::string& column : shape.key) {
    sql += (&column == shape.key.data() ? ", PRIMARY KEY (" : ", ") + sql::PgIdentifier(column);
  }
  return sql + (shape.key.empty() ? ")" : "))");
}

class PostgresSink final : public Sink {
 public:
  PostgresSink(Env& env, std::string uri, std::string schema, std::optional<sql::PgName> table,
               bool documents, Misfits misfits)
      : env_(env),
        uri_(std::move(uri)),
        schema_(std::move(schema)),
        table_(std::move(table)),
        documents_(documents),
        misfits_(misfits) {}

  Result<std::vector<TargetChange>> Prepare(const Collection& collection, bool evaluate) override {
    MUSTER_ASSIGN(const sql::PgName name, TableOf(collection.name));
    MUSTER_ASSIGN(const auto connection, OpenPgWriteSession(uri_));
    if (!evaluate) MUSTER_TRY(PostgresProgress::EnsureTable(*connection, schema_));
    const auto there = sql::DescribePgTable(*connection, name);
    if (there) return std::vector<TargetChange>{};
    if (there.error().code != Code::kNotFound) return there.error();
    MUSTER_ASSIGN(const TableShape shape, ShapeOf(collection, documents_));
    const std::string sql = CreateTableSql(name, shape);
    if (!evaluate) MUSTER_TRY(Create(*connection, sql));
    return std::vector<TargetChange>{{collection.name, sql}};
  }

  bool CanDelete() const override { return true; }

  bool ReplacesById(const Collection& collection) const override {
    const auto shape = ShapeOf(collection, documents_);
    return shape && !shape->key.empty();
  }
  std::string Place(const std::string& collection) const override {
    return table_ ? table_->table : collection;
  }

  Result<std::string> Identity(const std::string& collection) override {
    MUSTER_ASSIGN(const sql::PgName name, TableOf(collection));
    const MutexLock lock(mutex_);
    MUSTER_TRY(Look());
    // TRUNCATE gives the table a new file.
    const sql::PgStatement look{"",
                                "SELECT oid::text || CASE relkind WHEN 'r' THEN '/' || relfilenode"
                                " ELSE '' END FROM pg_class WHERE oid = to_regclass($1)",
                                false};
    MUSTER_ASSIGN(const sql::PgResult table,
                  looking_->Execute(look, sql::PgParams().Text(name.Sql())));
    if (table.rows() == 1) return std::string(table.Text(0, 0));
    return Error{Code::kNotFound, looking_->Place() + " has no table " + name.Sql()};
  }

  Result<std::string> TableId(const std::string& collection) override {
    MUSTER_ASSIGN(const sql::PgName name, TableOf(collection));
    const MutexLock lock(mutex_);
    MUSTER_TRY(Look());
    return PgTableId(*looking_, name.Sql());
  }

  BatchLimits PreferredLimits() const override { return kTableLimits; }

  Result<std::unique_ptr<Writer>> Open(const std::string& collection, const Fence& fence) override {
    MUSTER_ASSIGN(const sql::PgName name, TableOf(collection));
    MUSTER_ASSIGN(auto connection, OpenPgWriteSession(uri_));
    MUSTER_TRY(PostgresProgress::EnsureTable(*connection, schema_));
    MUSTER_ASSIGN(sql::PgTable table, sql::DescribePgTable(*connection, name));
    connection.reset();  // the writer has its own, and connections may be scarce
    MUSTER_ASSIGN(auto writer,
                  PostgresWriter::Open(env_, uri_, schema_, std::move(table), misfits_, fence));
    return writer;
  }

 private:
  Status Look() REQUIRES(mutex_) {
    if (looking_ && looking_->Usable()) return {};
    MUSTER_ASSIGN(looking_, OpenPgWriteSession(uri_));
    return {};
  }

  // A collection's name is a single identifier even with dots, which index names often contain.
  Result<sql::PgName> TableOf(const std::string& collection) const {
    if (table_) return *table_;
    if (collection.size() > 63) {
      return Error{Code::kInvalid,
                   "collection '" + collection +
                       "' has a name longer than the 63 bytes that "
                       "PostgreSQL keeps of a table's",
                   "name the table after # in the sink's URL, or rename the collection"};
    }
    return sql::PgName{schema_, collection};
  }

  // The loser of a race finds it existing.
  static Status Create(sql::PgConnection& connection, const std::string& sql) {
    const sql::PgParams none = {};
    const sql::PgStatement lock{"", "SELECT pg_advisory_xact_lock(hashtext('muster_create'))",
                                false};
    const sql::PgStatement create{"", sql, true};
    const sql::PgCall calls[] = {{lock, none}, {create, none}};
    auto done = connection.Execute(calls);
    if (!done) return done.error().Within(sql);
    return {};
  }

  Env& env_;
  const std::string uri_;
  const std::string schema_;
  const std::optional<sql::PgName> table_;
  const bool documents_;
  const Misfits misfits_;
  Mutex mutex_;
  // Kept for Identity and TableId.
  std::unique_ptr<sql::PgConnection> looking_ GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<Sink>> OpenPostgresSink(const Url& url, Env& env) {
  MUSTER_ASSIGN(std::string uri, sql::PostgresUri(url, "sink URL", kOwnParameters));
  const std::string documents = url.Param("documents").value_or("false");
  if (documents != "true" && documents != "false") {
    return Error{Code::kInvalid, "sink URL: documents=" + documents, "write true or false"};
  }
  MUSTER_ASSIGN(const Misfits misfits, MisfitsParam(url, "sink URL"));
  std::string schema = url.Param("schema").value_or("");
  std::optional<sql::PgName> table;
  if (!url.fragment.empty()) {
    MUSTER_ASSIGN(table, sql::PgName::Parse(url.fragment));
    if (table->schema.empty()) table->schema = schema;
    schema = table->schema;
  }
  return std::make_unique<PostgresSink>(env, std::move(uri), std::move(schema), std::move(table),
                                        documents == "true", misfits);
}

}  // namespace muster::pipeline
