#include "pipeline/sqlite/sqlite_source.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "core/mutex.h"
#include "pipeline/flow/scheme.h"
#include "pipeline/sqlite/sqlite_reader.h"
#include "pipeline/sqlite/sqlite_shape.h"
#include "pipeline/table/own_tables.h"
#include "pipeline/table/table_params.h"
#include "sql/sqlite_url.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kBusyTimeout = 10s;
constexpr int64_t kPartitionBytes = int64_t{256} << 20;
constexpr int64_t kMaxPartitions = 64;  // unless more are requested

class SqliteSource final : public Source {
 public:
  SqliteSource(std::string file, std::string table, std::vector<std::string> key,
               int64_t partitions, Misfits misfits)
      : file_(std::move(file)),
        table_(std::move(table)),
        key_(std::move(key)),
        partitions_(partitions),
        misfits_(misfits) {}

  bool KeepsJsonNulls() const override { return true; }

  Result<std::vector<Collection>> Collections() override {
    MUSTER_ASSIGN(const auto db, Open());
    MUSTER_ASSIGN(const auto names, Names(*db));
    std::vector<Collection> collections;
    for (const std::string& name : names) {
      MUSTER_ASSIGN(const sql::SqliteTable table, sql::DescribeSqliteTable(*db, name));
      collections.push_back({name, MetadataOf(ShapeOf(table))});
    }
    return collections;
  }

  Result<std::vector<LeftOut>> Unlisted() override {
    if (!table_.empty()) return std::vector<LeftOut>();
    MUSTER_ASSIGN(const auto db, Open());
    MUSTER_ASSIGN(const auto names, AllNames(*db));
    MUSTER_ASSIGN(const auto own, OwnTables(*db, names));
    return ReportOwnTables(own);
  }

  // Table names are case-insensitive.
  Result<std::optional<std::string>> TargetOf(const std::string& collection) override {
    if (!table_.empty()) return table_;
    MUSTER_ASSIGN(const auto db, Open());
    MUSTER_ASSIGN(const auto names, Names(*db));
    const std::string wanted = sql::SqliteTable::FoldedName(collection);
    for (const std::string& name : names) {
      if (sql::SqliteTable::FoldedName(name) == wanted) return name;
    }
    return std::optional<std::string>();
  }

  Result<std::string> TableId(const std::string& collection) override {
    return SqliteTableId(file_, collection);
  }

  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    MUSTER_ASSIGN(const auto db, Open());
    MUSTER_ASSIGN(const SqliteRelation relation, Find(*db, collection));
    MUSTER_TRY(CheckKey(*db, relation));
    MUSTER_ASSIGN(const int64_t pages, db->QueryInt("PRAGMA page_count"));
    MUSTER_ASSIGN(const int64_t page_bytes, db->QueryInt("PRAGMA page_size"));
    MUSTER_ASSIGN(const int64_t rows, db->QueryInt("SELECT count(*) FROM " +
                                                   sql::SqliteIdentifier(relation.table.name)));
    const int64_t by_size = pages * page_bytes / kPartitionBytes + 1;
    const int64_t wanted = !relation.by_rowid ? 1
                           : partitions_ > 0  ? partitions_
                                              : std::min(by_size, kMaxPartitions);
    std::vector<std::string> ends;
    if (wanted > 1) {
      MUSTER_ASSIGN(const auto span, SqliteReader::RowidSpan(*db, relation, "", ""));
      for (int64_t i = 1; span && span->last - span->first > wanted && i < wanted; ++i) {
        ends.push_back(
            SqliteReader::RowidPosition(span->first + (span->last - span->first) / wanted * i));
      }
    }
    const auto count = static_cast<int64_t>(ends.size()) + 1;
    std::vector<Partition> partitions;
    for (int64_t i = 0; i < count; ++i) {
      Partition partition{.collection = collection, .shard = static_cast<int>(i)};
      if (i > 0) partition.begin = ends[i - 1];
      if (i < count - 1) partition.end = ends[i];
      partition.documents = rows / count;
      partitions.push_back(std::move(partition));
    }
    return partitions;
  }

  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token stop) override {
    MUSTER_ASSIGN(auto db, Open());
    MUSTER_ASSIGN(SqliteRelation relation, Find(*db, partition.collection));
    return std::make_unique<SqliteReader>(std::move(db), std::move(relation),
                                          position.empty() ? partition.begin : position,
                                          partition.end, misfits_, std::move(stop));
  }

  std::optional<double> FractionBefore(const Partition& partition,
                                       const std::string& position) override {
    if (position.empty()) return 0;
    const auto span = WholeSpan(partition.collection);
    const auto at = SqliteReader::RowidOf(position);
    if (!span || !at) return std::nullopt;
    const int64_t first = SqliteReader::RowidOf(partition.begin).value_or(span->first);
    const int64_t last = SqliteReader::RowidOf(partition.end).value_or(span->last);
    if (last <= first) return 1;
    const auto part = static_cast<double>(*at) - static_cast<double>(first);
    return std::clamp(part / (static_cast<double>(last) - static_cast<double>(first)), 0.0, 1.0);
  }

 private:
  Result<std::unique_ptr<sql::SqliteDb>> Open() const {
    return sql::SqliteDb::Open(file_, sql::SqliteDb::Mode::kReadOnly, kBusyTimeout);
  }

  Result<std::vector<std::string>> Names(sql::SqliteDb& db) const {
    MUSTER_ASSIGN(std::vector<std::string> names, AllNames(db));
    if (!table_.empty()) return names;
    MUSTER_ASSIGN(const auto own, OwnTables(db, names));
    std::erase_if(names, [&](const std::string& name) { return own.contains(name); });
    return names;
  }

  static Result<std::set<std::string>> OwnTables(sql::SqliteDb& db,
                                                 const std::vector<std::string>& names) {
    return OwnTablesAmong(names, [&](const std::string& name) -> Result<std::vector<std::string>> {
      MUSTER_ASSIGN(const sql::SqliteTable table, sql::DescribeSqliteTable(db, name));
      std::vector<std::string> columns;
      for (const auto& column : table.columns) columns.push_back(column.name);
      return columns;
    });
  }

  // With Muster's own.
  Result<std::vector<std::string>> AllNames(sql::SqliteDb& db) const {
    if (!table_.empty()) return std::vector<std::string>{table_};
    MUSTER_ASSIGN(sql::SqliteStatement select,
                  db.Prepare("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type ="
                             " 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"));
    std::vector<std::string> names;
    while (true) {
      MUSTER_ASSIGN(const bool row, select.Step());
      if (!row) return names;
      names.emplace_back(select.Text(0));
    }
  }

  Result<SqliteRelation> Find(sql::SqliteDb& db, const std::string& collection) const {
    MUSTER_ASSIGN(const auto names, Names(db));
    if (std::find(names.begin(), names.end(), collection) == names.end()) {
      return Error{Code::kNotFound, "SQLite file " + file_ + " has no table '" + collection + "'",
                   "check the name and its case"};
    }
    SqliteRelation relation;
    MUSTER_ASSIGN(relation.table, sql::DescribeSqliteTable(db, collection));
    relation.key = key_;
    for (const std::string& column : key_) {
      if (relation.table.Find(column) != nullptr) continue;
      return Error{Code::kInvalid, collection + " has no column '" + column + "' to use as its key",
                   "check ?key=COLUMN,COLUMN"};
    }
    if (key_.empty() && !relation.table.rowid.empty()) {
      relation.key = {relation.table.rowid};
      relation.by_rowid = true;
    } else if (key_.empty()) {
      relation.key = relation.table.key;
    }
    if (relation.key.empty()) {
      return Error{Code::kInvalid, collection + " has no key to read it by",
                   "name columns that are unique and never null: ?key=COLUMN,COLUMN"};
    }
    return relation;
  }

  // The first and last rowid of a table, queried once: progress is shown often.
  std::optional<SqliteReader::Span> WholeSpan(const std::string& collection) {
    const MutexLock lock(mutex_);
    const auto known = spans_.find(collection);
    if (known != spans_.end()) return known->second;
    std::optional<SqliteReader::Span>& span = spans_[collection];
    const auto db = Open();
    if (!db) return std::nullopt;
    const auto relation = Find(**db, collection);
    if (!relation || !relation->by_rowid) return std::nullopt;
    const auto found = SqliteReader::RowidSpan(**db, *relation, "", "");
    if (found) span = *found;
    return span;
  }

  // A key without SQLite's guarantee could lose rows silently.
  Status CheckKey(sql::SqliteDb& db, const SqliteRelation& relation) const {
    if (key_.empty()) return {};
    std::string columns;
    std::string nulls;
    for (const std::string& column : relation.key) {
      columns += (columns.empty() ? "" : ", ") + sql::SqliteIdentifier(column);
      nulls += (nulls.empty() ? "" : " OR ") + sql::SqliteIdentifier(column) + " IS NULL";
    }
    MUSTER_ASSIGN(
        sql::SqliteStatement bad,
        db.Prepare("SELECT 1 FROM " + sql::SqliteIdentifier(relation.table.name) + " GROUP BY " +
                   columns + " HAVING count(*) > 1 OR " + nulls + " LIMIT 1"));
    MUSTER_ASSIGN(const bool row, bad.Step());
    if (!row) return {};
    return Error{Code::kInvalid,
                 relation.table.name + ": the key (" + columns + ") is null or not unique",
                 "rows would be lost: name other columns with ?key=COLUMN,COLUMN"};
  }

  const std::string file_;
  const std::string table_;
  const std::vector<std::string> key_;
  const int64_t partitions_;  // 0: by size
  const Misfits misfits_;
  Mutex mutex_;
  std::map<std::string, std::optional<SqliteReader::Span>> spans_ GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<Source>> OpenSqliteSource(const Url& url, Env& /*env*/) {
  MUSTER_TRY(CheckParams(url, {"key", "partitions", "documents", "misfits"}));
  MUSTER_ASSIGN(std::string file, sql::SqliteFileOf(url, "source URL"));
  std::vector<std::string> key = KeyParam(url);
  if (!key.empty() && url.fragment.empty()) {
    return Error{Code::kInvalid, "source URL gives a key for all tables of a file",
                 "name the table after #, or leave the key out"};
  }
  MUSTER_ASSIGN(const int64_t partitions, PartitionsParam(url));
  MUSTER_ASSIGN(const Misfits misfits, MisfitsParam(url, "source URL"));
  return std::make_unique<SqliteSource>(std::move(file), url.fragment, std::move(key), partitions,
                                        misfits);
}

}  // namespace muster::pipeline
