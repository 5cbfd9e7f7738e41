#include "task/data/reconcile.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/interrupt.h"
#include "core/json_fields.h"
#include "core/task_counts.h"
#include "task/data/staged_views.h"
#include "task/data/transform_target.h"

namespace muster::task {
namespace {

bool HasSucceeded(const Json& result) { return result.is_object() && !result.contains("Error"); }

// The name of "feed.posts" in SQLite.
std::string Joined(std::string table) {
  std::replace(table.begin(), table.end(), '.', '_');
  return table;
}

class Reconciliation {
 public:
  Reconciliation(const ReconcileJob& job, Env& env, std::stop_token stop)
      : job_(job), env_(env), stop_(std::move(stop)) {}

  Result<Reconciled> Run() {
    if (job_.extracted.is_object() && !job_.extracted.empty()) MUSTER_TRY(CheckStaging());
    if (!job_.scripts.empty()) MUSTER_TRY(CheckScripts());
    found_.counts =
        Json{{counts::kExtracted, extracted_}, {counts::kReconciledUnreadable, unreadable_},
             {counts::kStaged, staged_},       {counts::kRead, read_},
             {counts::kLoaded, loaded_},       {counts::kRejected, rejected_},
             {counts::kForeignKeys, keys_}};
    return std::move(found_);
  }

 private:
  Status CheckStaging() {
    MUSTER_ASSIGN(const auto db, OpenStagedDuckDb(job_.staging));
    const sql::DuckInterrupter interrupter(*db, stop_);
    for (const auto& [object, result] : job_.extracted.items()) {
      if (!HasSucceeded(result)) continue;
      if (stop_.stop_requested()) return Error{Code::kCancelled, "stopped"};
      const int64_t rows = NumberIn(result, counts::kRows);
      extracted_ += rows;
      unreadable_ += NumberIn(result, counts::kUnreadable);
      MUSTER_ASSIGN(const auto manifest, job_.staging.Find(object));
      if (!manifest) {
        Mismatch(object + ": " + std::to_string(rows) + " rows were extracted, none are staged");
        continue;
      }
      MUSTER_TRY(MakeStagedViews(*db, job_.staging, {*manifest}));
      MUSTER_ASSIGN(const int64_t staged,
                    db->QueryInt("SELECT count(*)::BIGINT FROM " + sql::DuckIdentifier(object)));
      staged_ += staged;
      if (staged != rows)
        Mismatch(object + ": " + std::to_string(rows) + " rows were extracted, " +
                 std::to_string(staged) + " are staged");
    }
    return {};
  }

  Status CheckScripts() {
    MUSTER_ASSIGN(const auto target, OpenTransformTarget(job_.target, env_, job_.on_wait));
    for (const ExpectedLoad& script : job_.scripts) {
      if (stop_.stop_requested()) return Error{Code::kCancelled, "stopped"};
      const Json result = job_.transformed.value(script.script, Json());
      if (!HasSucceeded(result)) continue;
      CountSelect(script, result);
      MUSTER_TRY(CompareWithStaging(script, result));
      MUSTER_TRY(CountTables(script, result, *target));
      MUSTER_TRY(CheckKeys(script, result, *target));
    }
    return {};
  }

  void CountSelect(const ExpectedLoad& script, const Json& result) {
    const int64_t read = NumberIn(result, counts::kRead);
    const int64_t loaded = NumberIn(result, counts::kLoaded);
    const int64_t rejected = NumberIn(result, counts::kRejected);
    read_ += read;
    loaded_ += loaded;
    rejected_ += rejected;
    if (read != loaded + rejected)
      Mismatch(script.script + ": " + std::to_string(read) + " rows were selected, " +
               Fate(loaded, rejected) + ": the target dropped some");
  }

  // An object may have been staged again after the script read it.
  Status CompareWithStaging(const ExpectedLoad& script, const Json& result) {
    const Json objects = result.value("objects", Json::object());
    for (const auto& [object, rows] : objects.items()) {
      MUSTER_ASSIGN(const auto manifest, job_.staging.Find(object));
      const int64_t seen = NumberIn(objects, object);
      if (!manifest || manifest->rows == seen) continue;
      Mismatch(script.script + ": " + std::to_string(seen) + " rows of " + object +
               " were staged when it ran, " + std::to_string(manifest->rows) + " are staged now");
    }
    return {};
  }

  Status CountTables(const ExpectedLoad& script, const Json& result, TransformTarget& target) {
    for (const auto& [table, object] : script.counts) {
      MUSTER_ASSIGN(const TargetTable described, target.Describe(script.schema, table));
      const Json objects = result.value("objects", Json::object());
      // The script does not name the object, so it does not read it.
      if (!objects.contains(object)) continue;
      const int64_t staged = NumberIn(objects, object);
      const int64_t loaded = NumberIn(result.value("tables", Json::object()), described.name);
      const int64_t rejected = table == script.table ? NumberIn(result, "rejected") : 0;
      if (staged == loaded + rejected) continue;
      Mismatch(described.name + ": " + std::to_string(staged) + " rows of " + object +
               " are staged, " + Fate(loaded, rejected) + " by " + script.script);
    }
    return {};
  }

  Status CheckKeys(const ExpectedLoad& script, const Json& result, TransformTarget& target) {
    const Json tables = result.value("tables", Json::object());
    for (const auto& [name, rows] : tables.items()) {
      // Strips the schema and its separator.
      const size_t begin = script.schema.empty() ? 0 : script.schema.size() + 1;
      MUSTER_ASSIGN(const TargetTable table, target.Describe(script.schema, name.substr(begin)));
      MUSTER_ASSIGN(const KeyCheck check, target.CheckKeys(table));
      keys_ += check.keys;
      for (const KeyViolation& violation : check.violations) {
        const std::string loader = LoaderOf(violation.parent, script.references);
        found_.orphans.push_back(
            violation.ToString() +
            (loader.empty() ? ": no rank that " + script.script + " references loads it" : loader));
      }
    }
    return {};
  }

  static std::string Fate(int64_t loaded, int64_t rejected) {
    return std::to_string(loaded) + " were loaded and " + std::to_string(rejected) + " rejected";
  }

  void Mismatch(std::string text) { found_.mismatches.push_back(std::move(text)); }

  const ReconcileJob& job_;
  Env& env_;
  const std::stop_token stop_;
  Reconciled found_;
  int64_t extracted_ = 0;
  int64_t unreadable_ = 0;
  int64_t staged_ = 0;
  int64_t read_ = 0;
  int64_t loaded_ = 0;
  int64_t rejected_ = 0;
  int64_t keys_ = 0;
};

}  // namespace

Result<Reconciled> Reconcile(const ReconcileJob& job, Env& env, const std::stop_token& stop) {
  const InterruptScope interrupt(stop);
  return Reconciliation(job, env, stop).Run();
}

std::string ParentIn(const std::string& message) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kAround{
      {{" missing from ", ": "},             // KeyViolation's own message
       {"not present in table \"", "\""}}};  // PostgreSQL
  for (const auto& [before, after] : kAround) {
    size_t begin = message.find(before);
    if (begin == message.npos) continue;
    begin += before.size();
    return message.substr(begin, message.find(after, begin) - begin);
  }
  return "";
}

std::string LoaderOf(const std::string& parent, const std::map<std::string, int64_t>& references) {
  std::string loaders;
  for (const auto& [table, rank] : references) {
    const bool whole = parent == table || parent == Joined(table);
    // PostgreSQL's message has the table without its schema.
    if (!whole && parent != table.substr(table.find('.') + 1)) continue;
    const std::string loader = "rank " + std::to_string(rank) + " loads " + table;
    if (whole) return ": " + loader;
    loaders += (loaders.empty() ? ": " : " and ") + loader;
  }
  return loaders;
}

}  // namespace muster::task
