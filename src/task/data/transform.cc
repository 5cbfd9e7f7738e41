#include "task/data/transform.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "core/file.h"
#include "core/interrupt.h"
#include "core/task_counts.h"
#include "core/url.h"
#include "task/call/sql_script.h"
#include "task/data/staged_views.h"

namespace muster::task {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRejected = "_rejected";
constexpr const char* kRows = "muster_rows";  // the result of the SELECT

// The script's words in lower case, to find the objects it may read.
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
  Transformation(const TransformJob& job, Env& env, std::stop_token stop)
      : job_(job), env_(env), stop_(std::move(stop)) {}

  Result<Json> Run() {
    MUSTER_ASSIGN(target_, OpenTransformTarget(job_.target, env_, job_.on_wait));
    MUSTER_ASSIGN(const auto earlier, target_->Take(job_.fence, stop_));
    if (earlier) return ParseJson(*earlier, "the result in muster_transform");
    MUSTER_ASSIGN(db_, OpenStagedDuckDb(job_.staging));
    const sql::DuckInterrupter interrupter(*db_, stop_);
    MUSTER_TRY(OfferObjects());
    for (const auto& [name, value] : job_.arguments) {
      MUSTER_TRY(db_->Execute("SET VARIABLE " + sql::DuckIdentifier(name) + " = " +
                              sql::DuckLiteral(value)));
    }
    MUSTER_TRY(db_->Execute("CREATE SCHEMA target"));
    MUSTER_TRY(RunStatements());
    MUSTER_TRY(LoadAll());
    const Json result{{counts::kRead, read_},
                      {counts::kLoaded, loaded_},
                      {counts::kRejected, rejected_},
                      {"tables", tables_},
                      {"objects", objects_}};
    if (stop_.stop_requested()) return Error{Code::kCancelled, "stopped"};
    MUSTER_TRY(Commit(ToJsonText(result)));
    return result;
  }

 private:
  // Rows that a statement has produced for a table of the target.
  struct MadeRows {
    SqlStatement statement;
    size_t number = 0;  // of the statement, in the script
    std::string from;   // DuckDB's table
    std::string where = "true";
    std::string name;  // of the target's table
    RowsToLoad rows = {};
    TargetTable table = {};
  };

  Status RunStatements() {
    size_t number = 0;
    for (const SqlStatement& statement : SplitSqlScript(job_.text)) {
      ++number;
      if (stop_.stop_requested()) return Error{Code::kCancelled, "stopped"};
      const size_t made_before = made_.size();
      if (const Status done = RunStatement(statement); !done) {
        return ScriptError(done.error(), job_.script, statement, number);
      }
      for (size_t i = made_before; i < made_.size(); ++i) {
        made_[i].statement = statement;
        made_[i].number = number;
      }
    }
    if (selected_) return {};
    return Error{Code::kInvalid,
                 job_.script + ": no SELECT for the rows of " + job_.Argument("TARGET_TABLE")};
  }

  // Everything is computed and checked before the target's transaction begins: that holds locks,
  // and a server ends one that is idle.
  Status LoadAll() {
    for (MadeRows& made : made_) {
      if (const Status checked = Check(made); !checked)
        return ScriptError(checked.error(), job_.script, made.statement, made.number);
    }
    for (const MadeRows& made : made_) {
      if (stop_.stop_requested()) return Error{Code::kCancelled, "stopped"};
      const auto taken = target_->Load(*db_, made.rows, made.table, stop_);
      if (!taken) return ScriptError(taken.error(), job_.script, made.statement, made.number);
      tables_[made.table.name] = *taken;
      if (made.from == kRows) loaded_ = *taken;
    }
    return {};
  }

  // A commit of unknown outcome is resolved on another connection.
  Status Commit(const std::string& result) {
    const Status committed = target_->Commit(result);
    if (committed) return {};
    const Error& error = committed.error();
    if (error.code != Code::kUnknownOutcome) return error.Within(job_.script);
    const auto again = OpenTransformTarget(job_.target, env_, job_.on_wait);
    if (!again) return error.Within(job_.script);
    const auto kept = (*again)->Take(job_.fence, stop_);
    if (!kept) return error.Within(job_.script);
    if (*kept) return {};
    return Error{
        Code::kUnavailable,
        job_.script + ": the connection was lost and nothing was loaded: " + error.message};
  }

  Status OfferObjects() {
    auto staged = job_.staging.List();
    if (!staged && staged.error().code != Code::kNotFound) return staged.error();
    if (!staged) return {};
    const std::set<std::string> words = WordsOf(job_.text);
    const std::string text = Lower(job_.text);
    // Only objects that the script names: those in a bucket must be downloaded.
    std::vector<Manifest> mentioned;
    for (const Manifest& one : *staged) {
      if (words.contains(Lower(one.object))) objects_[one.object] = one.rows;
      staged_ += (staged_.empty() ? "" : ", ") + one.object;
      const bool quoted = one.object.find('"') != std::string::npos;
      if (quoted || text.find(Lower(one.object)) != std::string::npos) mentioned.push_back(one);
    }
    for (const Manifest& one : mentioned) MUSTER_TRY(CheckWhole(one));
    return MakeStagedViews(*db_, job_.staging, mentioned);
  }

  // By its size: its digest would take as long as loading it.
  Status CheckWhole(const Manifest& manifest) {
    MUSTER_ASSIGN(const bool whole, job_.staging.IsWhole(manifest));
    if (whole) return {};
    return Error{Code::kConflict,
                 job_.staging.Place() + manifest.file +
                     " is not what its manifest says: it was changed, or " + manifest.object +
                     " is being staged again",
                 "retry the extract of " + manifest.object};
  }

  Status RunStatement(const SqlStatement& statement) {
    const auto query = db_->IsQuery(statement.text);
    if (!query) return WithHint(query.error());
    if (!*query) {
      if (const Status done = db_->Execute(statement.text); !done) return WithHint(done.error());
      return NoteFurtherTables();
    }
    if (selected_) {
      return Error{Code::kInvalid, "a second SELECT: only one may give the rows to load",
                   "combine them with UNION ALL, or create a table in the schema target"};
    }
    selected_ = true;
    MUSTER_TRY(
        db_->Execute("CREATE TEMP TABLE " + std::string(kRows) + " AS " + statement.text + "\n"));
    return NoteSelected();
  }

  // Helps when an object's name is misspelt, or the script runs before its extraction.
  Error WithHint(Error error) const {
    if (error.message.find("Table with name") != std::string::npos) {
      error.hint = staged_.empty() ? "nothing is staged in " + job_.staging.Place()
                                   : "staged objects: " + staged_.substr(0, 1'000);
    }
    return error;
  }

  Status NoteSelected() {
    MUSTER_ASSIGN(read_, Count(kRows, "true"));
    MadeRows made{.statement = {}, .from = kRows, .name = job_.Argument("TARGET_TABLE")};
    MUSTER_ASSIGN(const RowsToLoad rows, Describe(kRows));
    if (std::find(rows.columns.begin(), rows.columns.end(), kRejected) != rows.columns.end()) {
      made.where = std::string(kRejected) + " IS NULL";
      MUSTER_TRY(KeepRejected());
    }
    made_.push_back(std::move(made));
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
                            std::string(kRejected) + " IS NOT NULL) TO " + sql::DuckLiteral(path) +
                            " (FORMAT json)"));
    return job_.staging.Keep("rejected/" + name);
  }

  Status NoteFurtherTables() {
    std::vector<std::string> found;
    MUSTER_TRY(db_->Query("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'target'",
                          [&](std::span<const sql::DuckValue> values) -> Status {
                            found.emplace_back(std::get<std::string_view>(values[0]));
                            return {};
                          }));
    for (const std::string& name : found) {
      if (!further_.insert(name).second) continue;
      made_.push_back(
          {.statement = {}, .from = "target." + sql::DuckIdentifier(name), .name = name});
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
                          [&](std::span<const sql::DuckValue> values) -> Status {
                            rows.columns.emplace_back(std::get<std::string_view>(values[0]));
                            rows.types.emplace_back(std::get<std::string_view>(values[1]));
                            return {};
                          }));
    MUSTER_ASSIGN(rows.last_rowid,
                  db_->QueryInt("SELECT coalesce(max(rowid), -1)::BIGINT FROM " + from));
    return rows;
  }

  // Determines what is loaded where, and checks that it can be.
  Status Check(MadeRows& made) {
    MUSTER_ASSIGN(made.rows, Describe(made.from));
    made.rows.where = made.where;
    const auto column = std::find(made.rows.columns.begin(), made.rows.columns.end(), kRejected);
    if (made.from == kRows && column != made.rows.columns.end()) {
      made.rows.types.erase(made.rows.types.begin() + (column - made.rows.columns.begin()));
      made.rows.columns.erase(column);
    }
    MUSTER_ASSIGN(made.table, target_->Describe(job_.Argument("TARGET_SCHEMA"), made.name));
    MUSTER_TRY(CheckColumns(made.rows, made.table));
    return CheckKeys(made.rows, made.table);
  }

  static Status CheckColumns(const RowsToLoad& rows, const TargetTable& table) {
    if (table.key.empty()) {
      return Error{Code::kInvalid, table.name + " has no primary key",
                   "declare one: without it, a repeated load would duplicate rows"};
    }
    const auto has = [](const std::vector<std::string>& all, const std::string& one) {
      return std::find(all.begin(), all.end(), one) != all.end();
    };
    for (const std::string& column : rows.columns) {
      if (has(table.columns, column)) continue;
      return Error{Code::kInvalid, table.name + " has no column '" + column + "'",
                   "its columns are " + ColumnList(table.columns, PlainName)};
    }
    for (const std::string& column : table.key) {
      if (has(rows.columns, column)) continue;
      return Error{Code::kInvalid,
                   "the rows lack column '" + column + "' of the primary key of " + table.name};
    }
    return {};
  }

  static std::string PlainName(std::string_view name) { return std::string(name); }

  // Checked here, since databases differ in how they treat such rows.
  Status CheckKeys(const RowsToLoad& rows, const TargetTable& table) {
    const std::string key = ColumnList(table.key, sql::DuckIdentifier);
    std::string missing;
    for (const std::string& column : table.key) {
      missing += (missing.empty() ? "" : " OR ") + sql::DuckIdentifier(column) + " IS NULL";
    }
    MUSTER_ASSIGN(const int64_t nulls, Count(rows.from, rows.where + " AND (" + missing + ")"));
    if (nulls > 0) {
      return Error{
          Code::kInvalid,
          std::to_string(nulls) + " rows for " + table.name + " have a null key (" + key + ")",
          "give them one, or reject them with the column _rejected"};
    }
    std::string example;
    MUSTER_TRY(db_->Query("SELECT CAST(to_json(struct_pack(" + Packed(table.key) +
                              ")) AS VARCHAR) FROM " + rows.from + " WHERE " + rows.where +
                              " GROUP BY " + key + " HAVING count(*) > 1 LIMIT 1",
                          [&](std::span<const sql::DuckValue> values) -> Status {
                            example = std::get<std::string_view>(values[0]);
                            return {};
                          }));
    if (example.empty()) return {};
    return Error{Code::kInvalid, "several rows for " + table.name + " have the key " + example,
                 "group them, or reject all but one with the column _rejected"};
  }

  static std::string Packed(const std::vector<std::string>& columns) {
    std::string packed;
    for (const std::string& column : columns) {
      packed += (packed.empty() ? "" : ", ") + sql::DuckIdentifier(column) +
                " := " + sql::DuckIdentifier(column);
    }
    return packed;
  }

  Result<int64_t> Count(const std::string& from, const std::string& where) {
    return db_->QueryInt("SELECT count(*)::BIGINT FROM " + from + " WHERE " + where);
  }

  const TransformJob& job_;
  Env& env_;
  const std::stop_token stop_;
  std::unique_ptr<sql::DuckDb> db_;
  std::unique_ptr<TransformTarget> target_;
  bool selected_ = false;
  int64_t read_ = 0;
  int64_t loaded_ = 0;
  int64_t rejected_ = 0;
  std::string staged_;
  std::set<std::string> further_;
  std::vector<MadeRows> made_;
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

Result<Json> RunTransform(const TransformJob& job, Env& env, const std::stop_token& stop) {
  // May be interrupted anywhere: without a commit nothing happened, and the target records commits.
  const InterruptScope interrupt(stop);
  return Transformation(job, env, stop).Run();
}

}  // namespace muster::task
