#include "pipeline/sqlite/sqlite_sink.h"

#include <chrono>
#include <filesystem>
#include <system_error>

#include "pipeline/flow/scheme.h"
#include "pipeline/sqlite/sqlite_shape.h"
#include "pipeline/sqlite/sqlite_writer.h"
#include "pipeline/table/table_params.h"
#include "pipeline/table/table_shape.h"
#include "sql/sqlite_url.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kBusyTimeout = 10s;

class SqliteSink final : public Sink {
 public:
  SqliteSink(Env& env, std::string file, std::string table, bool documents, Misfits misfits)
      : env_(env),
        file_(std::move(file)),
        table_(std::move(table)),
        documents_(documents),
        misfits_(misfits) {}

  Result<std::vector<TargetChange>> Prepare(const Collection& collection, bool evaluate) override {
    const std::string& name = table_.empty() ? collection.name : table_;
    MUSTER_ASSIGN(const TableShape shape, ShapeOf(collection, documents_));
    const std::string sql = CreateSqliteTableSql(name, shape);
    const auto mode = evaluate ? sql::SqliteDb::Mode::kReadOnly : sql::SqliteDb::Mode::kCreate;
    const auto db = sql::SqliteDb::Open(file_, mode, kBusyTimeout);
    // A file that does not exist yet is empty.
    if (!db && evaluate && db.error().code == Code::kUnavailable) {
      return std::vector<TargetChange>{{collection.name, sql}};
    }
    if (!db) return db.error();
    const auto there = sql::DescribeSqliteTable(**db, name);
    if (!there && there.error().code != Code::kNotFound) return there.error();
    if (!evaluate) {
      MUSTER_TRY(SqliteWriter::EnsureProgressTable(**db));
      MUSTER_TRY((*db)->Execute(sql));
      MUSTER_TRY(SqliteTarget(**db, name).Mark());
    }
    if (there) return std::vector<TargetChange>{};
    return std::vector<TargetChange>{{collection.name, sql}};
  }

  bool CanDelete() const override { return true; }

  bool ReplacesById(const Collection& collection) const override {
    const auto shape = ShapeOf(collection, documents_);
    return shape && !shape->key.empty();
  }
  // Table names are case-insensitive.
  std::string Place(const std::string& collection) const override {
    return sql::SqliteTable::FoldedName(table_.empty() ? collection : table_);
  }

  Result<std::string> Identity(const std::string& collection) override {
    std::error_code failed;
    if (!std::filesystem::exists(file_, failed) && !failed) {
      return Error{Code::kNotFound, "no SQLite file " + file_};
    }
    MUSTER_ASSIGN(const auto db,
                  sql::SqliteDb::Open(file_, sql::SqliteDb::Mode::kReadOnly, kBusyTimeout));
    return SqliteTarget(*db, Place(collection)).Identity();
  }

  Result<std::string> TableId(const std::string& collection) override {
    return SqliteTableId(file_, Place(collection));
  }

  BatchLimits PreferredLimits() const override { return kTableLimits; }

  Result<std::unique_ptr<Writer>> Open(const std::string& collection, const Fence& fence) override {
    MUSTER_ASSIGN(auto db,
                  sql::SqliteDb::Open(file_, sql::SqliteDb::Mode::kExisting, kBusyTimeout));
    MUSTER_TRY(SqliteWriter::EnsureProgressTable(*db));
    MUSTER_ASSIGN(sql::SqliteTable table,
                  sql::DescribeSqliteTable(*db, table_.empty() ? collection : table_));
    MUSTER_ASSIGN(auto writer, SqliteWriter::Open(env_, std::move(db), "SQLite file " + file_,
                                                  std::move(table), misfits_, fence));
    return writer;
  }

 private:
  Env& env_;
  const std::string file_;
  const std::string table_;
  const bool documents_;
  const Misfits misfits_;
};

}  // namespace

Result<std::unique_ptr<Sink>> OpenSqliteSink(const Url& url, Env& env) {
  MUSTER_TRY(CheckParams(url, {"documents", "misfits"}));
  MUSTER_ASSIGN(std::string file, sql::SqliteFileOf(url, "sink URL"));
  const std::string documents = url.Param("documents").value_or("false");
  if (documents != "true" && documents != "false") {
    return Error{Code::kInvalid, "sink URL: documents=" + documents, "write true or false"};
  }
  MUSTER_ASSIGN(const Misfits misfits, MisfitsParam(url, "sink URL"));
  return std::make_unique<SqliteSink>(env, std::move(file), url.fragment, documents == "true",
                                      misfits);
}

}  // namespace muster::pipeline
