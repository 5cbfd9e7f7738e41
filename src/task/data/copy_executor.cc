#include "task/data/copy_executor.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/secrets.h"
#include "core/sha256.h"
#include "core/url.h"
#include "muster/migrate.h"
#include "pipeline/pipeline.h"
#include "sql/duckdb.h"
#include "task/background.h"
#include "task/data/column_types.h"
#include "task/data/staged_views.h"
#include "task/data/staging.h"
#include "task/parameters.h"

namespace muster::task {
namespace {

namespace fs = std::filesystem;

constexpr size_t kWriteBytes = size_t{1} << 20;
constexpr int64_t kRowsTold = 1'000;

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
  return Json{{"rows", manifest.rows},
              {"bytes", manifest.bytes},
              {"file", call.staging.Place() + manifest.file},
              {"failed", manifest.failed}};
}

// The manifest of an earlier call with this token, if what it says is still there.
Result<std::optional<Manifest>> Earlier(const CopyCall& call) {
  MUSTER_ASSIGN(auto found, call.staging.FindAny(call.object));
  if (!found) return found;
  if (found->tenant != call.tenant || found->migration != call.migration) {
    return Error{Code::kConflict,
                 call.staging.Place() + " holds " + call.object + " of tenant '" + found->tenant +
                     "', migration '" + found->migration + "'",
                 "give each migration a staging folder of its own"};
  }
  // An earlier run of the same name has left it.
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
  if (found) return *std::move(found);
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

// A file that is gone at the end unless it was given its name.
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

// Writes documents as lines.
class LineWriter {
 public:
  static Result<LineWriter> Create(const std::string& path) {
    MUSTER_ASSIGN(auto output, pipeline::CreateFileOutput(path, pipeline::Compression::kNone,
                                                          pipeline::FileAccess::kOwner));
    return LineWriter(std::move(output));
  }

  Status Add(std::string_view body) {
    const size_t begin = buffer_.size();
    buffer_ += body;
    // Line ends stand between the parts of a document only, where spaces do as well.
    std::replace_if(
        buffer_.begin() + static_cast<std::ptrdiff_t>(begin), buffer_.end(),
        [](char c) { return c == '\n' || c == '\r'; }, ' ');
    buffer_ += '\n';
    return buffer_.size() < kWriteBytes ? Status() : Drain();
  }

  Result<int64_t> Finish() {
    MUSTER_TRY(Drain());
    MUSTER_ASSIGN(const uint64_t bytes, output_->Flush());
    return static_cast<int64_t>(bytes);
  }

  std::string Sha256() { return digest_->Hex(); }

 private:
  explicit LineWriter(std::unique_ptr<pipeline::FileOutput> output) : output_(std::move(output)) {}

  Status Drain() {
    MUSTER_TRY(output_->Append(buffer_));
    digest_->Add(buffer_);
    buffer_.clear();
    return {};
  }

  std::unique_ptr<pipeline::FileOutput> output_;
  std::string buffer_;
  std::unique_ptr<muster::Sha256> digest_ = std::make_unique<muster::Sha256>();
};

Result<std::string> Sha256OfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string buffer(kWriteBytes, '\0');
  Sha256 digest;
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    digest.Add(std::string_view(buffer).substr(0, static_cast<size_t>(file.gcount())));
  }
  if (!file.eof()) return Error{Code::kUnavailable, path + " cannot be read again"};
  return digest.Hex();
}

struct CopyCount {
  int64_t rows = 0;
  int64_t unreadable = 0;
  std::string first_defect;  // of them
};

std::string RowsText(int64_t rows) { return std::to_string(rows) + (rows == 1 ? " row" : " rows"); }

states::TaskFailure TooManyUnreadable(const CopyCall& call, const CopyCount& count) {
  const std::string file =
      fs::path(call.staging.PathOf(call.object, ".failed.jsonl")).filename().string();
  const Error error{Code::kCorrupt,
                    RowsText(count.unreadable) + " of " + call.object + " cannot be read, " +
                        std::to_string(*call.max_unreadable) + " may be (" + RowsText(count.rows) +
                        " can); the first: " + count.first_defect + "; all are in " +
                        call.staging.Place() + file,
                    "correct them in the source, or allow for them by 'max_unreadable' of the "
                    "object or the plan"};
  return {"Copy.Unreadable", Redact(error.ToString())};
}

// Reads all partitions of the object into `lines`, and what is no row into the dead letters.
Status CopyRows(pipeline::Source& source, const CopyCall& call, LineWriter& lines,
                ColumnTypes& types, CopyCount& count, states::TaskContext& context,
                const std::stop_token& stop) {
  const std::string failed_path = call.staging.PathOf(call.object, ".failed.jsonl");
  std::error_code ignored;
  fs::remove(failed_path, ignored);
  MUSTER_ASSIGN(const auto dead_letters, pipeline::OpenDeadLetters(failed_path, call.migration));
  MUSTER_ASSIGN(const std::vector<pipeline::Partition> partitions, source.Partitions(call.object));
  for (const pipeline::Partition& partition : partitions) {
    MUSTER_ASSIGN(const auto reader, source.Read(partition, "", stop));
    while (true) {
      if (stop.stop_requested()) return Error{Code::kCancelled, "stopped"};
      MUSTER_ASSIGN(const auto document, reader->Next());
      if (!document) break;
      if (!document->defect.empty()) {
        if (count.unreadable++ == 0) count.first_defect = document->defect;
        MUSTER_TRY(dead_letters->Add({.collection = call.object,
                                      .target = call.object,
                                      .item = call.token,
                                      .document = *document,
                                      .reason = document->defect,
                                      .transformed = true}));
        continue;
      }
      MUSTER_TRY(types.Note(document->body));
      MUSTER_TRY(lines.Add(document->body));
      if (++count.rows % kRowsTold == 0) context.Progress(count.rows);
    }
  }
  return dead_letters->Flush();
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

// Gives the lines that were written their name, or makes a Parquet file of them; completes the
// manifest.
Status PublishRows(const CopyCall& call, Env& env, const std::string& lines,
                   const std::string& sha256, Manifest& manifest, const std::stop_token& stop) {
  const std::string path = call.staging.PathOf(call.object, "." + call.format);
  manifest.file = fs::path(path).filename().string();
  // An object without a single column has nothing that Parquet could hold.
  if (call.format != "parquet" || manifest.columns.empty()) {
    manifest.sha256 = sha256;
    return pipeline::PublishFile(lines, path);
  }
  const PartialFile parquet(call, env, ".parquet");
  MUSTER_TRY(WriteParquet(call, lines, manifest, parquet.path(), stop));
  MUSTER_ASSIGN(manifest.sha256, Sha256OfFile(parquet.path()));
  std::error_code failed;
  // DuckDB made it for everyone; the folder may be older than we.
  fs::permissions(parquet.path(), fs::perms::owner_read | fs::perms::owner_write, failed);
  if (failed) return FileError("protect", parquet.path(), failed.value());
  manifest.bytes = static_cast<int64_t>(fs::file_size(parquet.path(), failed));
  return pipeline::PublishFile(parquet.path(), path);
}

Result<states::TaskOutcome> Copy(const CopyCall& call, states::TaskContext& context,
                                 const std::stop_token& stop) {
  Env& env = context.env();
  Manifest manifest{.object = call.object,
                    .format = call.format,
                    .source = WithoutPassword(call.source),
                    .tenant = call.tenant,
                    .migration = call.migration,
                    .run = call.staging.owner().run,
                    .token = call.token};
  MUSTER_ASSIGN(const auto earlier, Earlier(call));
  if (earlier) return states::TaskOutcome(states::TaskSuccess{ResultOf(call, *earlier)});
  MUSTER_ASSIGN(const auto source, pipeline::OpenSource(call.source, env));
  MUSTER_ASSIGN(const pipeline::Collection collection, FindObject(*source, call));
  MUSTER_TRY(call.staging.Begin(call.object));

  ColumnTypes types;
  ExpectColumns(collection, types);
  const PartialFile partial(call, env, ".jsonl");
  MUSTER_ASSIGN(LineWriter lines, LineWriter::Create(partial.path()));
  CopyCount count;
  MUSTER_TRY(CopyRows(*source, call, lines, types, count, context, stop));
  if (call.max_unreadable && count.unreadable > *call.max_unreadable) {
    MUSTER_TRY(call.staging.KeepFailed(call.object));
    return states::TaskOutcome(TooManyUnreadable(call, count));
  }
  manifest.rows = count.rows;
  manifest.failed = count.unreadable;
  MUSTER_ASSIGN(manifest.bytes, lines.Finish());
  manifest.columns = types.Columns();

  MUSTER_TRY(PublishRows(call, env, partial.path(), lines.Sha256(), manifest, stop));
  MUSTER_TRY(call.staging.Publish(manifest));
  return states::TaskOutcome(states::TaskSuccess{ResultOf(call, manifest)});
}

class CopyExecutor : public states::TaskExecutor {
 public:
  bool Runs(std::string_view resource) const override { return resource == "muster:copy"; }

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override {
    const auto copy = ReadCall(call);
    if (!copy) return states::TaskFailure{"States.Runtime", copy.error().ToString()};
    const auto start = std::chrono::steady_clock::now();
    auto result = InBackground(
        call, context, [&](const std::stop_token& stop) { return Copy(*copy, context, stop); });
    if (result) return *std::move(result);
    if (IsTimeUp(call, start)) return TimedOut();
    return states::TaskFailure{FailureName("Copy", result.error().code),
                               Redact(result.error().ToString())};
  }

  states::TaskOutcome Poll(const states::TaskCall& call, const Json& /*resume*/,
                           states::TaskContext& context) override {
    return Start(call, context);
  }

  void Cancel(const states::TaskCall& /*call*/, const Json& /*resume*/,
              states::TaskContext& /*context*/) override {}
};

}  // namespace

std::unique_ptr<states::TaskExecutor> MakeCopyExecutor() {
  return std::make_unique<CopyExecutor>();
}

}  // namespace muster::task
