#include "task/data/copy_executor.h"

#include <filesystem>
#include <memory>
#include <string>

#include "core/file.h"
#include "core/file_output.h"
#include "core/secrets.h"
#include "core/task_counts.h"
#include "core/url.h"
#include "muster/migrate.h"
#include "sql/duckdb.h"
#include "task/background.h"
#include "task/data/column_types.h"
#include "task/data/copy_run.h"
#include "task/data/load_fence.h"
#include "task/data/staged_rows.h"
#include "task/data/staged_views.h"
#include "task/data/staging.h"
#include "task/parameters.h"

namespace muster::task {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxRestarts = 3;
constexpr milliseconds kRestartPause{200};

struct CopyCall {
  std::string source;
  std::string object;
  Staging staging;
  std::string format;
  std::string tenant;
  std::string migration;
  std::optional<int64_t> max_unreadable;
  std::string token;
};

Result<CopyCall> ReadCall(const states::TaskCall& call) {
  MUSTER_ASSIGN(
      const Parameters parameters,
      Parameters::Read(call, {"source", "object", "staging", "format", "tenant", "migration",
                              "max_unreadable", "folder", "staging_run", "staging_unmarked"}));
  MUSTER_ASSIGN(Staging staging, StagingOf(parameters));
  MUSTER_ASSIGN(std::string source, parameters.PlaceInFolder("source"));
  MUSTER_ASSIGN(std::string object, parameters.Required("object"));
  MUSTER_ASSIGN(std::string format, parameters.Optional("format", "jsonl"));
  MUSTER_ASSIGN(std::string tenant, parameters.Optional("tenant"));
  MUSTER_ASSIGN(std::string migration, parameters.Optional("migration"));
  if (format != "jsonl" && format != "parquet") {
    return parameters.Wrong("format must be jsonl or parquet");
  }
  const Json limit = parameters.Value("max_unreadable");
  std::optional<int64_t> max_unreadable;
  if (limit.is_number_integer()) max_unreadable = limit.get<int64_t>();
  if (!limit.is_null() && max_unreadable.value_or(-1) < 0) {
    return parameters.Wrong("max_unreadable must be a number of rows");
  }
  return CopyCall{.source = std::move(source),
                  .object = std::move(object),
                  .staging = std::move(staging),
                  .format = std::move(format),
                  .tenant = std::move(tenant),
                  .migration = std::move(migration),
                  .max_unreadable = max_unreadable,
                  .token = call.token};
}

Json ResultOf(const CopyCall& call, const Manifest& manifest) {
  return Json{{counts::kRows, manifest.rows},
              {"bytes", manifest.bytes},
              {"file", call.staging.Place() + manifest.file},
              {counts::kUnreadable, manifest.failed}};
}

// The manifest of an earlier call with this token, if its file still exists.
Result<std::optional<Manifest>> Earlier(const CopyCall& call) {
  MUSTER_ASSIGN(auto found, call.staging.FindAny(call.object));
  if (!found) return found;
  if (found->tenant != call.tenant || found->migration != call.migration) {
    // Not a conflict: plans would retry that, in vain.
    return Error{Code::kInvalid,
                 call.staging.Place() + " holds " + call.object + " of tenant '" + found->tenant +
                     "', migration '" + found->migration + "'",
                 "give each migration a staging folder of its own"};
  }
  // Left by an earlier run of the same name.
  MUSTER_ASSIGN(found, call.staging.Find(call.object));
  if (!found) return found;
  MUSTER_ASSIGN(const bool complete, call.staging.IsWhole(*found));
  if (found->token != call.token || found->format != call.format || !complete) {
    return std::optional<Manifest>();
  }
  return found;
}

Result<pipeline::Collection> FindObject(pipeline::Source& source, const CopyCall& call) {
  MUSTER_ASSIGN(std::optional<pipeline::Collection> found, source.Describe(call.object));
  if (found && found->refusal) return *std::move(found->refusal);
  if (found) return *std::move(found);
  MUSTER_ASSIGN(const auto left_out, source.Unlisted());
  for (const pipeline::LeftOut& one : left_out) {
    if (one.name != call.object) continue;
    return Error{Code::kNotFound,
                 Redact(call.source) + " leaves out '" + call.object + "': " + one.reason,
                 "take the object out of the plan, or name it in the source's URL"};
  }
  MUSTER_ASSIGN(const std::vector<pipeline::Collection> all, source.Collections());
  std::string names;
  for (const pipeline::Collection& one : all) {
    if (names.size() < 200) names += (names.empty() ? "" : ", ") + one.name;
  }
  return Error{Code::kNotFound,
               Redact(call.source) + " has no object '" + call.object + "'" +
                   (names.empty() ? "" : "; it has " + names),
               "add the object to the source, or correct its name in the plan"};
}

void ExpectColumns(const pipeline::Collection& collection, ColumnTypes& types) {
  const auto metadata = ParseJson(collection.metadata, "metadata");
  if (!metadata || !metadata->contains("columns") || !(*metadata)["columns"].is_array()) return;
  for (const Json& column : (*metadata)["columns"]) {
    if (column.is_object() && column.contains("name")) types.Expect(column["name"]);
  }
}

// A file that is removed at the end, unless it was renamed.
class PartialFile {
 public:
  PartialFile(const CopyCall& call, Env& env, const std::string& ending)
      : path_(call.staging.PathOf(call.object, "." + env.NewId() + ending + ".partial")) {}
  ~PartialFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

std::string RowsText(int64_t rows) { return std::to_string(rows) + (rows == 1 ? " row" : " rows"); }

states::TaskFailure TooManyUnreadable(const CopyCall& call, const pipeline::Counts& counts,
                                      const std::string& first_reason) {
  const Error error{Code::kCorrupt,
                    RowsText(counts.failed) + " of " + call.object + " cannot be read, " +
                        std::to_string(*call.max_unreadable) + " may be (" +
                        RowsText(counts.written) + " can); the first: " + first_reason +
                        "; all are in " + call.staging.Place() +
                        call.staging.UnreadableName(call.object),
                    "correct them in the source, or allow for them by 'max_unreadable' of the "
                    "object or the plan"};
  return {"Copy.Unreadable", Redact(error.ToString())};
}

// Turns staged lines into a Parquet file beside them.
Status WriteParquet(const CopyCall& call, const std::string& lines, const Manifest& manifest,
                    const std::string& parquet, const std::stop_token& stop) {
  MUSTER_ASSIGN(const auto db, OpenStagedDuckDb(call.staging));
  const sql::DuckInterrupter interrupter(*db, stop);
  return db->Execute("COPY (SELECT * FROM " + StagedRowsSql(lines, "jsonl", manifest.columns) +
                     ") TO " + sql::DuckLiteral(parquet) + " (FORMAT parquet, COMPRESSION zstd)");
}

std::string WithoutPassword(const std::string& source) {
  const auto url = ParseUrl(source);
  if (url && !url->password.empty() && !IsSecretReference(url->password)) {
    RememberSecret(url->password);
  }
  return Redact(source);
}

// Renames the lines, or converts them to Parquet; completes the manifest.
Status PublishRows(const CopyCall& call, Env& env, const std::string& lines,
                   const std::string& sha256, Manifest& manifest, const std::stop_token& stop) {
  const std::string path = call.staging.PathOf(call.object, "." + call.format);
  manifest.file = fs::path(path).filename().string();
  // Parquet cannot represent an object without columns.
  if (call.format != "parquet" || manifest.columns.empty()) {
    manifest.sha256 = sha256;
    return PublishFile(lines, path);
  }
  const PartialFile parquet(call, env, ".parquet");
  MUSTER_TRY(WriteParquet(call, lines, manifest, parquet.path(), stop));
  MUSTER_ASSIGN(manifest.sha256, Sha256OfFile(parquet.path()));
  std::error_code failed;
  // DuckDB creates it readable by everyone, and the folder may be older than this process.
  fs::permissions(parquet.path(), fs::perms::owner_read | fs::perms::owner_write, failed);
  if (failed) return FileError("protect", parquet.path(), failed.value());
  manifest.bytes = static_cast<int64_t>(fs::file_size(parquet.path(), failed));
  return PublishFile(parquet.path(), path);
}

// Whether to discard the pieces: the next try would fail in the same way, or needs the disk space.
bool IsFinal(Code code) {
  if (code == Code::kFull) return true;
  return !IsTransient(code) && code != Code::kCancelled && code != Code::kLeaseLost;
}

// One call: drives the copy's work run to its end, makes the staged file of its pieces, and
// publishes it.
class Copying {
 public:
  Copying(const CopyCall& call, const CopyPlan& plan, store::Store& store,
          const work::WorkTerms& terms, states::TaskContext& context, std::stop_token stop)
      : call_(call),
        source_name_(plan.source),
        folder_(plan.folder),
        run_(store, context.env(), plan, terms),
        context_(context),
        stop_(std::move(stop)) {}

  Result<states::TaskOutcome> Run() {
    // Checked before the manifest, which another process may be about to publish.
    MUSTER_ASSIGN(const bool resumes, run_.HasBegun());
    MUSTER_ASSIGN(const auto earlier, Earlier(call_));
    if (earlier) {
      std::error_code failed;
      // Left by a process that crashed after it had published the object.
      if (fs::exists(folder_, failed)) CleanUp();
      return Success(*earlier);
    }
    MUSTER_ASSIGN(source_, pipeline::OpenSource(call_.source, context_.env()));
    MUSTER_ASSIGN(collection_, FindObject(*source_, call_));
    if (!resumes) MUSTER_TRY(call_.staging.Begin(call_.object));
    auto outcome = Copy();
    for (int i = 0; !outcome && i < kMaxRestarts; ++i) {
      // Another process that shares the copy has completed it, and removed its run.
      if (const auto shared = Earlier(call_); shared && *shared) {
        CleanUp();
        return Success(**shared);
      }
      if (outcome.error().code != Code::kIncompatible || stop_.stop_requested()) break;
      // Pieces were lost, or another process has started it over.
      MUSTER_TRY(run_.Remove());
      context_.env().Sleep(context_.env().Jitter(kRestartPause), stop_);
      MUSTER_ASSIGN(const bool has_begun, run_.HasBegun());
      if (!has_begun) MUSTER_TRY(call_.staging.Begin(call_.object));
      outcome = Copy();
    }
    if (!outcome && IsFinal(outcome.error().code)) CleanUp();
    return outcome;
  }

 private:
  states::TaskOutcome Success(const Manifest& manifest) const {
    return states::TaskSuccess{ResultOf(call_, manifest)};
  }

  // Best effort: the next copy of this object removes what is left.
  void CleanUp() { static_cast<void>(run_.Remove()); }

  Result<states::TaskOutcome> Copy() {
    MUSTER_TRY(run_.Begin());
    MUSTER_TRY(run_.Drive(
        *source_, collection_, [this](int64_t rows) { context_.Progress(rows); }, stop_));
    MUSTER_ASSIGN(const CopiedRows copied, run_.Rows());
    const PartialFile fresh(call_, context_.env(), ".failed");
    MUSTER_ASSIGN(
        const StagedLetters letters,
        PublishLetters(copied.letters, fresh.path(), call_.staging.UnreadablePath(call_.object)));
    if (call_.max_unreadable && copied.counts.failed > *call_.max_unreadable) {
      MUSTER_TRY(call_.staging.KeepFailed(call_.object));
      CleanUp();
      return states::TaskOutcome(TooManyUnreadable(call_, copied.counts, letters.first_reason));
    }
    MUSTER_ASSIGN(const Manifest manifest, Stage(copied));
    MUSTER_TRY(call_.staging.Publish(manifest));
    // Left by processes that were killed here, or that share the copy and no longer need them.
    call_.staging.RemovePartial(call_.object);
    CleanUp();
    return Success(manifest);
  }

  // Makes the object's file; it counts when its manifest is published.
  Result<Manifest> Stage(const CopiedRows& copied) {
    ColumnTypes types;
    ExpectColumns(collection_, types);
    const PartialFile partial(call_, context_.env(), ".jsonl");
    auto joined = JoinRows(copied.pieces, partial.path(), types, stop_);
    // A piece was deleted: the copy starts over.
    if (!joined && joined.error().code == Code::kNotFound)
      joined.error().code = Code::kIncompatible;
    MUSTER_ASSIGN(const StagedRows staged, std::move(joined));
    if (staged.rows != copied.counts.written) {
      return Error{Code::kIncompatible, call_.object + ": " + RowsText(copied.counts.written) +
                                            " were copied, " + RowsText(staged.rows) + " are left"};
    }
    Manifest manifest{.object = call_.object,
                      .format = call_.format,
                      .rows = staged.rows,
                      .failed = copied.counts.failed,
                      .bytes = staged.bytes,
                      .source = source_name_,
                      .tenant = call_.tenant,
                      .migration = call_.migration,
                      .run = call_.staging.owner().run,
                      .token = call_.token,
                      .columns = types.Columns()};
    MUSTER_TRY(PublishRows(call_, context_.env(), partial.path(), staged.sha256, manifest, stop_));
    return manifest;
  }

  const CopyCall& call_;
  const std::string source_name_;
  const std::string folder_;
  CopyRun run_;
  states::TaskContext& context_;
  const std::stop_token stop_;
  std::unique_ptr<pipeline::Source> source_;
  pipeline::Collection collection_;
};

class CopyExecutor final : public BlockingExecutor {
 public:
  CopyExecutor(Env& env, StoreHandle store, const work::WorkTerms& terms)
      : BlockingExecutor("Copy"), env_(env), store_(std::move(store)), terms_(terms) {}

  bool Runs(std::string_view resource) const override { return resource == "muster:copy"; }

 protected:
  Result<Work> Prepare(const states::TaskCall& call, states::TaskContext& context) override {
    MUSTER_ASSIGN(CopyCall copy, ReadCall(call));
    return Work([this, copy = std::move(copy), &context](const std::stop_token& stop) {
      return Copy(copy, context, stop);
    });
  }

 private:
  Result<states::TaskOutcome> Copy(const CopyCall& call, states::TaskContext& context,
                                   const std::stop_token& stop) {
    MUSTER_ASSIGN(store::Store* const store, store_.Open(env_));
    MUSTER_ASSIGN(std::string folder, call.staging.CopyFolder(call.object));
    const CopyPlan plan{.object = call.object,
                        .call = CallOfToken(call.token),
                        .source = WithoutPassword(call.source),
                        .identity = call.source,
                        .place = call.staging.Place() + call.object,
                        .run_name = call.migration,
                        .folder = std::move(folder)};
    return Copying(call, plan, *store, terms_, context, stop).Run();
  }

  Env& env_;
  const StoreHandle store_;
  const work::WorkTerms terms_;
};

}  // namespace

work::WorkTerms CopyTerms() {
  // Items are not handed over: that would only add pieces. The lease is long, since the first row
  // may take hours (Salesforce runs a bulk job first); the next call releases items of a dead
  // process.
  constexpr milliseconds kLease = std::chrono::hours(13);
  return {.lease = kLease,
          .max_lease = kLease,
          .max_hold = milliseconds(0),
          .idle_wait = milliseconds(500),
          .fail_fast = true};
}

std::unique_ptr<states::TaskExecutor> MakeCopyExecutor(Env& env, StoreHandle store,
                                                       const work::WorkTerms& terms) {
  return std::make_unique<CopyExecutor>(env, std::move(store), terms);
}

}  // namespace muster::task
