#include "task/transform.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/url.h"
#include "pipeline/file_output.h"
#include "task/sql_script.h"
#include "task/staged_views.h"

namespace muster::task {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRejected = "_rejected";
constexpr const char* kRows = "muster_rows";  // what the SELECT gave

// The script's words, in lower case: enough to know which objects it may read.
std::set<std::string> WordsOf(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  return words;
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

class Transformation {
 public:
  Transformation(const TransformJob& job, std::stop_token stop)
      : job_(job), stop_(std::move(stop)) {}

  Result<Json> Run() {
    MUSTER_ASSIGN(db_, OpenStagedDuckDb(job_.staging));
    const DuckInterrupter interrupter(*db_, stop_);
    MUSTER_TRY(OfferObjects());
    for (const auto& [name, value] : job_.arguments) {
      MUSTER_TRY(db_->Execute("SET VARIABLE " + DuckIdentifier(name) + " = " + DuckLiteral(value)));
    }
    MUSTER_TRY(db_->Execute("CREATE SCHEMA target"));
    MUSTER_ASSIGN(target_, OpenTransformTarget(job_.target));
    size_t number = 0;
    for (const SqlStatement& statement : SplitSqlScript(job_.text)) {
      ++number;
      if (stop_.stop_requested()) return Error{Code::kCancelled, "stopped"};
      if (const Status done = RunStatement(statement); !done) {
        return ScriptError(done.error(), job_.script, statement, number);
      }
    }
    if (!selected_) {
      return Error{Code::kInvalid,
                   job_.script + ": no SELECT gives the rows of " + job_.Argument("TARGET_TABLE")};
    }
    if (const Status committed = target_->Commit(); !committed) {
      return committed.error().Within(job_.script);
    }
    return Json{{"read", read_},
                {"loaded", loaded_},
                {"rejected", rejected_},
                {"tables", tables_},
                {"objects", objects_}};
  }

 private:
  Status OfferObjects() {
    auto staged = job_.staging.List();
    if (!staged && staged.error().code != Code::kNotFound) return staged.error();
    if (!staged) return {};
    const std::set<std::string> words = WordsOf(job_.text);
    const std::string text = Lower(job_.text);
    // Others may have to be brought from far away.
    std::vector<Manifest> mentioned;
    for (const Manifest& one : *staged) {
      if (words.contains(Lower(one.object))) objects_[one.object] = one.rows;
      staged_ += (staged_.empty() ? "" : ", ") + one.object;
      const bool quoted = one.object.find('"') != std::string::npos;
      if (quoted || text.find(Lower(one.object)) != std::string::npos) mentioned.push_back(one);
    }
    return MakeStagedViews(*db_, job_.staging, mentioned);
  }

  Status RunStatement(const SqlStatement& statement) {
    const auto query = db_->IsQuery(statement.text);
    if (!query) return WithHint(query.error());
    if (!*query) {
      if (const Status done = db_->Execute(statement.text); !done) return WithHint(done.error());
      return LoadFurtherTables();
    }
    if (selected_) {
      return Error{Code::kInvalid, "this is a second SELECT: which rows are meant?",
                   "join them by UNION ALL, or make a table in the schema target"};
    }
    selected_ = true;
    MUSTER_TRY(
        db_->Execute("CREATE TEMP TABLE " + std::string(kRows) + " AS " + statement.text + "\n"));
    return LoadSelected();
  }

  // What a person who mistypes an object, or runs a script before its extraction, needs to know.
  Error WithHint(Error error) const {
    if (error.message.find("Table with name") != std::string::npos) {
      error.hint = staged_.empty() ? "nothing is staged in " + job_.staging.Place()
                                   : "staged are " + staged_.substr(0, 1'000);
    }
    return error;
  }

  Status LoadSelected() {
    MUSTER_ASSIGN(RowsToLoad rows, Describe(kRows));
    MUSTER_ASSIGN(read_, Count(kRows, "true"));
    const auto column = std::find(rows.columns.begin(), rows.columns.end(), kRejected);
    if (column != rows.columns.end()) {
      rows.types.erase(rows.types.begin() + (column - rows.columns.begin()));
      rows.columns.erase(column);
      rows.where = std::string(kRejected) + " IS NULL";
      MUSTER_TRY(KeepRejected());
    }
    MUSTER_ASSIGN(loaded_, Load(rows, job_.Argument("TARGET_TABLE")));
    return {};
  }

  Status KeepRejected() {
    MUSTER_ASSIGN(rejected_, Count(kRows, std::string(kRejected) + " IS NOT NULL"));
    const std::string folder = job_.staging.folder() + "/rejected";
    const std::string entity = job_.Argument("ENTITY_NAME");
    const std::string name =
        PercentEncode(entity.empty() ? job_.Argument("TARGET_TABLE") : entity) + ".jsonl";
    const std::string path = folder + "/" + name;
    std::error_code failed;
    if (rejected_ == 0) {
      fs::remove(path, failed);
      return job_.staging.Keep("rejected/" + name);
    }
    MUSTER_TRY(MakePrivateFolders(folder));
    MUSTER_TRY(db_->Execute("COPY (SELECT * FROM " + std::string(kRows) + " WHERE " +
                            std::string(kRejected) + " IS NOT NULL) TO " + DuckLiteral(path) +
                            " (FORMAT json)"));
    return job_.staging.Keep("rejected/" + name);
  }

  Status LoadFurtherTables() {
    std::vector<std::string> made;
    MUSTER_TRY(db_->Query("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'target'",
                          [&](std::span<const DuckValue> values) -> Status {
                            made.emplace_back(std::get<std::string_view>(values[0]));
                            return {};
                          }));
    for (const std::string& name : made) {
      if (!further_.insert(name).second) continue;
      MUSTER_ASSIGN(const RowsToLoad rows, Describe("target." + DuckIdentifier(name)));
      MUSTER_TRY(Load(rows, name));
    }
    return {};
  }

  Result<RowsToLoad> Describe(const std::string& from) {
    RowsToLoad rows{.from = from,
                    .where = "true",
                    .last_rowid = -1,
                    .columns = {},
                    .types = {},
                    .progress = job_.progress};
    MUSTER_TRY(db_->Query("SELECT column_name, column_type FROM (DESCRIBE " + from + ")",
                          [&](std::span<const DuckValue> values) -> Status {
                            rows.columns.emplace_back(std::get<std::string_view>(values[0]));
                            rows.types.emplace_back(std::get<std::string_view>(values[1]));
                            return {};
                          }));
    MUSTER_ASSIGN(rows.last_rowid,
                  db_->QueryInt("SELECT coalesce(max(rowid), -1)::BIGINT FROM " + from));
    return rows;
  }

  // Loads rows into a table of the target's schema, and says how many it has taken.
  Result<int64_t> Load(const RowsToLoad& rows, const std::string& name) {
    MUSTER_ASSIGN(const TargetTable table, target_->Describe(job_.Argument("TARGET_SCHEMA"), name));
    MUSTER_TRY(CheckColumns(rows, table));
    MUSTER_TRY(CheckKeys(rows, table));
    MUSTER_ASSIGN(const int64_t taken, target_->Load(*db_, rows, table, stop_));
    tables_[table.name] = taken;
    return taken;
  }

  static Status CheckColumns(const RowsToLoad& rows, const TargetTable& table) {
    if (table.key.empty()) {
      return Error{Code::kInvalid, table.name + " has no primary key",
                   "without one a repetition would load rows twice: declare it"};
    }
    const auto has = [](const std::vector<std::string>& all, const std::string& one) {
      return std::find(all.begin(), all.end(), one) != all.end();
    };
    for (const std::string& column : rows.columns) {
      if (has(table.columns, column)) continue;
      return Error{Code::kInvalid, table.name + " has no column '" + column + "'",
                   "it has " + ColumnList(table.columns, PlainName)};
    }
    for (const std::string& column : table.key) {
      if (has(rows.columns, column)) continue;
      return Error{Code::kInvalid, "the rows have no column '" + column +
                                       "', which is of the primary key of " + table.name};
    }
    return {};
  }

  static std::string PlainName(std::string_view name) { return std::string(name); }

  // The same on every database: what they say of such rows differs, or is nothing.
  Status CheckKeys(const RowsToLoad& rows, const TargetTable& table) {
    const std::string key = ColumnList(table.key, DuckIdentifier);
    std::string missing;
    for (const std::string& column : table.key) {
      missing += (missing.empty() ? "" : " OR ") + DuckIdentifier(column) + " IS NULL";
    }
    MUSTER_ASSIGN(const int64_t nulls, Count(rows.from, rows.where + " AND (" + missing + ")"));
    if (nulls > 0) {
      return Error{Code::kInvalid,
                   std::to_string(nulls) + " rows for " + table.name + " have no key (" + key + ")",
                   "give them one, or reject them by the column _rejected"};
    }
    std::string example;
    MUSTER_TRY(db_->Query("SELECT CAST(to_json(struct_pack(" + Packed(table.key) +
                              ")) AS VARCHAR) FROM " + rows.from + " WHERE " + rows.where +
                              " GROUP BY " + key + " HAVING count(*) > 1 LIMIT 1",
                          [&](std::span<const DuckValue> values) -> Status {
                            example = std::get<std::string_view>(values[0]);
                            return {};
                          }));
    if (example.empty()) return {};
    return Error{Code::kInvalid, "several rows for " + table.name + " have the key " + example,
                 "group them, or reject all but one by the column _rejected"};
  }

  static std::string Packed(const std::vector<std::string>& columns) {
    std::string packed;
    for (const std::string& column : columns) {
      packed +=
          (packed.empty() ? "" : ", ") + DuckIdentifier(column) + " := " + DuckIdentifier(column);
    }
    return packed;
  }

  Result<int64_t> Count(const std::string& from, const std::string& where) {
    return db_->QueryInt("SELECT count(*)::BIGINT FROM " + from + " WHERE " + where);
  }

  const TransformJob& job_;
  const std::stop_token stop_;
  std::unique_ptr<DuckDb> db_;
  std::unique_ptr<TransformTarget> target_;
  bool selected_ = false;
  int64_t read_ = 0;
  int64_t loaded_ = 0;
  int64_t rejected_ = 0;
  std::string staged_;
  std::set<std::string> further_;
  Json tables_ = Json::object();
  Json objects_ = Json::object();
};

}  // namespace

std::string TransformJob::Argument(std::string_view name) const {
  for (const auto& [key, value] : arguments) {
    if (key == name) return value;
  }
  return {};
}

Result<Json> RunTransform(const TransformJob& job, const std::stop_token& stop) {
  return Transformation(job, stop).Run();
}

}  // namespace muster::task
