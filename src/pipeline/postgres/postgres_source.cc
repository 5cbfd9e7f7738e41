#include "pipeline/postgres/postgres_source.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "core/mutex.h"
#include "pipeline/postgres/postgres_reader.h"
#include "pipeline/postgres/postgres_relation.h"
#include "pipeline/postgres/postgres_session.h"
#include "pipeline/postgres/postgres_snapshot.h"
#include "pipeline/table/own_tables.h"
#include "pipeline/table/row_key.h"
#include "pipeline/table/table_params.h"
#include "pipeline/table/table_shape.h"
#include "sql/postgres_uri.h"

namespace muster::pipeline {
namespace {

constexpr std::string_view kOwnParameters[] = {"schema", "key", "query", "partitions", "documents"};
constexpr int64_t kPartitionBytes = int64_t{256} << 20;
constexpr int64_t kMaxPartitions = 64;       // unless more are requested
constexpr double kSamplePerPartition = 200;  // rows sampled to find where a partition ends

constexpr const char* kColumnsOfTable =
    "SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN"
    " pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname ="
    " coalesce(nullif($1, ''), current_schema()) AND c.relname = $2 AND a.attnum > 0 AND NOT"
    " a.attisdropped";

struct Options {
  std::string schema;
  std::vector<std::string> key;
  std::string query;
  std::string fragment;
  int64_t partitions = 0;  // 0: by size
};

// A number that grows with the key, for integers and ctid pages.
std::optional<double> NumberOf(const PgRelation& relation, const std::string& position) {
  const std::string& type = relation.key[0].base;
  if (type != "int2" && type != "int4" && type != "int8" && type != "tid") return std::nullopt;
  const auto values = DecodeKey(position, relation.key.size());
  if (!values) return std::nullopt;
  std::string_view text = (*values)[0];
  if (text.starts_with('(')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

class PostgresSource final : public Source {
 public:
  PostgresSource(Env& env, std::string uri, Options options)
      : env_(env), options_(std::move(options)), snapshot_(std::move(uri)) {}

  bool KeepsJsonNulls() const override { return true; }

  Result<std::vector<Collection>> Collections() override {
    MUSTER_ASSIGN(const auto connection, snapshot_.OpenSession());
    MUSTER_ASSIGN(const std::vector<std::string> names, Names(*connection));
    std::vector<Collection> collections;
    for (const std::string& name : names) {
      MUSTER_ASSIGN(const PgRelation relation, RelationOf(*connection, name));
      collections.push_back({name, MetadataOf(ShapeOfRelation(relation))});
    }
    return collections;
  }

  Result<std::vector<LeftOut>> Unlisted() override {
    if (!options_.query.empty() || !options_.fragment.empty()) return std::vector<LeftOut>();
    MUSTER_ASSIGN(const auto connection, snapshot_.OpenSession());
    MUSTER_ASSIGN(const auto names, AllNames(*connection));
    MUSTER_ASSIGN(const auto own, OwnTables(*connection, names));
    return ReportOwnTables(own);
  }

  Result<std::optional<std::string>> TargetOf(const std::string& collection) override {
    MUSTER_ASSIGN(const auto connection, snapshot_.OpenSession());
    MUSTER_ASSIGN(const std::vector<std::string> names, Names(*connection));
    if (!options_.query.empty() || !options_.fragment.empty()) return names.front();
    if (std::find(names.begin(), names.end(), collection) != names.end()) return collection;
    return std::optional<std::string>();
  }

  Result<std::string> TableId(const std::string& collection) override {
    if (!options_.query.empty()) return std::string();
    MUSTER_ASSIGN(const sql::PgName name, NameOf(collection));
    MUSTER_ASSIGN(const auto connection, snapshot_.OpenSession());
    return PgTableId(*connection, name.Sql());
  }

  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    MUSTER_ASSIGN(const PgRelation* relation, Find(collection));
    MUSTER_ASSIGN(const auto connection, snapshot_.OpenSession());
    MUSTER_TRY(CheckKey(*connection, *relation));
    std::vector<Partition> partitions;
    if (relation->by_ctid && relation->table.kind == 'p') {
      for (const std::string& leaf : relation->leaves) {
        partitions.push_back({.collection = collection,
                              .shard = static_cast<int>(partitions.size()),
                              .part = leaf,
                              .mark = MarkOf(*relation)});
      }
      return partitions;
    }
    MUSTER_ASSIGN(const auto ends, InnerEnds(*connection, *relation));
    const auto count = static_cast<int64_t>(ends.size()) + 1;
    for (int64_t i = 0; i < count; ++i) {
      Partition partition{
          .collection = collection, .shard = static_cast<int>(i), .mark = MarkOf(*relation)};
      if (i > 0) partition.begin = ends[i - 1];
      if (i < count - 1) partition.end = ends[i];
      if (relation->table.estimated_rows >= 0) {
        partition.documents = std::llround(relation->table.estimated_rows) / count;
      }
      if (relation->table.bytes > 0) partition.bytes = relation->table.bytes / count;
      partitions.push_back(std::move(partition));
    }
    return partitions;
  }

  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token stop) override {
    MUSTER_ASSIGN(const PgRelation* relation, Find(partition.collection));
    if (!partition.mark.empty() && partition.mark != MarkOf(*relation)) {
      return Error{Code::kCorrupt,
                   "table " + relation->table.sql_name + " was dropped and created again" +
                       (relation->by_ctid ? ", or rewritten" : ""),
                   "documents read before may be gone: migrate it again with a new run"};
    }
    auto reader = std::make_unique<PostgresReader>(env_, snapshot_, *relation, partition.part,
                                                   position.empty() ? partition.begin : position,
                                                   partition.end, std::move(stop));
    MUSTER_TRY(reader->Start());
    return reader;
  }

  std::optional<double> FractionBefore(const Partition& partition,
                                       const std::string& position) override {
    if (position.empty()) return 0;
    const auto relation = Find(partition.collection);
    if (!relation) return std::nullopt;
    const auto edges = Edges(**relation, partition.part);
    if (!edges) return std::nullopt;
    const auto at = NumberOf(**relation, position);
    const auto begin =
        partition.begin.empty() ? edges->first : NumberOf(**relation, partition.begin);
    const auto end = partition.end.empty() ? edges->second : NumberOf(**relation, partition.end);
    if (!at || !begin || !end) return std::nullopt;
    if (*end <= *begin) return 1;
    return std::clamp((*at - *begin) / (*end - *begin), 0.0, 1.0);
  }

 private:
  // Positions in a table without a key are offsets in its file.
  static std::string MarkOf(const PgRelation& relation) {
    const sql::PgTable& table = relation.table;
    return relation.by_ctid ? table.oid + "/" + table.file : table.oid;
  }

  using EdgePair = std::pair<std::optional<double>, std::optional<double>>;

  Result<std::vector<std::string>> Names(sql::PgConnection& connection) {
    if (!options_.query.empty()) {
      return std::vector<std::string>{options_.fragment.empty() ? "query" : options_.fragment};
    }
    if (!options_.fragment.empty()) {
      MUSTER_ASSIGN(const sql::PgName name, sql::PgName::Parse(options_.fragment));
      return std::vector<std::string>{name.table};
    }
    MUSTER_ASSIGN(std::vector<std::string> names, AllNames(connection));
    MUSTER_ASSIGN(const auto own, OwnTables(connection, names));
    std::erase_if(names, [&](const std::string& name) { return own.contains(name); });
    return names;
  }

  Result<std::set<std::string>> OwnTables(sql::PgConnection& connection,
                                          const std::vector<std::string>& names) const {
    return OwnTablesAmong(names, [&](const std::string& name) -> Result<std::vector<std::string>> {
      sql::PgParams params;
      params.Text(options_.schema);
      params.Text(name);
      MUSTER_ASSIGN(const sql::PgResult rows,
                    connection.Execute(sql::PgStatement{"", kColumnsOfTable, false}, params));
      std::vector<std::string> columns;
      for (int row = 0; row < rows.rows(); ++row) columns.emplace_back(rows.Text(row, 0));
      return columns;
    });
  }

  // Of the schema, with Muster's own.
  Result<std::vector<std::string>> AllNames(sql::PgConnection& connection) const {
    sql::PgParams params;
    params.Text(options_.schema);
    MUSTER_ASSIGN(
        const sql::PgResult tables,
        connection.Execute(
            sql::PgStatement{"",
                             "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON"
                             " n.oid = c.relnamespace WHERE n.nspname ="
                             " coalesce(nullif($1, ''), current_schema()) AND c.relkind IN"
                             " ('r', 'p') AND NOT c.relispartition"
                             " ORDER BY c.relname COLLATE \"C\"",
                             false},
            params));
    std::vector<std::string> names;
    for (int row = 0; row < tables.rows(); ++row) names.emplace_back(tables.Text(row, 0));
    return names;
  }

  Result<PgRelation> RelationOf(sql::PgConnection& connection,
                                const std::string& collection) const {
    if (!options_.query.empty()) {
      return RelationOfQuery(connection, collection, options_.query, options_.key);
    }
    MUSTER_ASSIGN(const sql::PgName name, NameOf(collection));
    return RelationOfTable(connection, collection, name, options_.key);
  }

  Result<sql::PgName> NameOf(const std::string& collection) const {
    sql::PgName name{options_.schema, collection};
    if (!options_.fragment.empty()) {
      MUSTER_ASSIGN(name, sql::PgName::Parse(options_.fragment));
      if (name.schema.empty()) name.schema = options_.schema;
    }
    return name;
  }

  static TableShape ShapeOfRelation(const PgRelation& relation) {
    TableShape shape;
    for (const sql::PgTable::Column& column : relation.table.columns) {
      shape.columns.push_back({column.name, column.portable_type, column.nullable});
    }
    if (relation.key_is_certain) shape.key = relation.table.key;
    return shape;
  }

  // Described once: a relation's shape is fixed within a snapshot.
  Result<const PgRelation*> Find(const std::string& collection) {
    const MutexLock lock(mutex_);
    const auto known = relations_.find(collection);
    if (known != relations_.end()) return &known->second;
    MUSTER_ASSIGN(const auto connection, snapshot_.OpenSession());
    MUSTER_ASSIGN(const std::vector<std::string> names, Names(*connection));
    if (std::find(names.begin(), names.end(), collection) == names.end()) {
      return Error{Code::kNotFound, "the source has no collection '" + collection + "'"};
    }
    MUSTER_ASSIGN(PgRelation relation, RelationOf(*connection, collection));
    return &relations_.emplace(collection, std::move(relation)).first->second;
  }

  // Where all partitions but the last end.
  Result<std::vector<std::string>> InnerEnds(sql::PgConnection& connection,
                                             const PgRelation& relation) const {
    const sql::PgTable& table = relation.table;
    const int64_t wanted =
        options_.partitions > 0
            ? options_.partitions
            : std::clamp<int64_t>(table.bytes / kPartitionBytes + 1, 1, kMaxPartitions);
    std::vector<std::string> ends;
    if (wanted == 1 || relation.by_ctid || table.kind != 'r') return ends;
    const double rows = table.estimated_rows > 0 ? table.estimated_rows
                                                 : static_cast<double>(table.bytes) / 1000 + 1;
    const double percent =
        std::min(100.0, 100 * kSamplePerPartition * static_cast<double>(wanted) / rows);
    MUSTER_ASSIGN(const sql::PgResult sample,
                  connection.Execute(
                      sql::PgStatement{"",
                                       "SELECT " + relation.KeyAsText() + " FROM " + relation.from +
                                           " t TABLESAMPLE SYSTEM (" + std::to_string(percent) +
                                           ") REPEATABLE (0)" + relation.KeyOrder(),
                                       false},
                      sql::PgParams()));
    for (int64_t i = 1; i < wanted && sample.rows() >= wanted; ++i) {
      std::vector<std::string_view> key;
      for (size_t column = 0; column < relation.key.size(); ++column) {
        key.push_back(
            sample.Text(static_cast<int>(sample.rows() * i / wanted), static_cast<int>(column)));
      }
      ends.push_back(EncodeKey(key));
    }
    return ends;
  }

  // The first and last key as numbers, queried once.
  Result<EdgePair> Edges(const PgRelation& relation, const std::string& part) {
    const std::string& type = relation.key[0].base;
    if (type != "int2" && type != "int4" && type != "int8" && type != "tid") return EdgePair{};
    // For a view or a query this could take as long as reading it.
    if (relation.table.kind == 'v' || relation.table.kind == 'q') return EdgePair{};
    const MutexLock lock(mutex_);
    const std::string what = part.empty() ? relation.from : part;
    const auto known = edges_.find(what);
    if (known != edges_.end()) return known->second;
    MUSTER_ASSIGN(const auto connection, snapshot_.OpenSession());
    const std::string key = "t." + relation.key[0].sql;
    MUSTER_ASSIGN(const sql::PgResult edges,
                  connection->Execute(sql::PgStatement{"",
                                                       "SELECT min(" + key + ")::text, max(" + key +
                                                           ")::text FROM " + what + " t",
                                                       false},
                                      sql::PgParams()));
    EdgePair pair;
    if (!edges.IsNull(0, 0)) {
      std::vector<std::string_view> first(relation.key.size(), "");
      std::vector<std::string_view> last = first;
      first[0] = edges.Text(0, 0);
      last[0] = edges.Text(0, 1);
      pair = {NumberOf(relation, EncodeKey(first)), NumberOf(relation, EncodeKey(last))};
    }
    edges_[what] = pair;
    return pair;
  }

  Env& env_;
  const Options options_;
  PostgresSnapshot snapshot_;
  Mutex mutex_;
  std::map<std::string, PgRelation> relations_ GUARDED_BY(mutex_);
  std::map<std::string, EdgePair> edges_ GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<Source>> OpenPostgresSource(const Url& url, Env& env) {
  MUSTER_ASSIGN(std::string uri, sql::PostgresUri(url, "source URL", kOwnParameters));
  Options options{.schema = url.Param("schema").value_or(""),
                  .key = KeyParam(url),
                  .query = url.Param("query").value_or(""),
                  .fragment = url.fragment};
  MUSTER_ASSIGN(options.partitions, PartitionsParam(url));
  if (options.query.empty() && !options.fragment.empty()) {
    MUSTER_TRY(sql::PgName::Parse(options.fragment));
  }
  if (!options.key.empty() && options.query.empty() && options.fragment.empty()) {
    return Error{Code::kInvalid, "source URL gives a key for all tables of a schema",
                 "name the table after #, or leave the key out"};
  }
  return std::make_unique<PostgresSource>(env, std::move(uri), std::move(options));
}

}  // namespace muster::pipeline
