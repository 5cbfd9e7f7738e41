#include "task/data/copy_run.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "core/file.h"
#include "core/file_output.h"
#include "core/mutex.h"
#include "core/sha256.h"
#include "muster/migrate.h"
#include "pipeline/pipeline.h"
#include "task/parameters.h"
#include "work/work.h"

namespace muster::task {
namespace {

namespace fs = std::filesystem;

constexpr char kRowsFolder[] = "rows";
constexpr char kLetters[] = "/failed.jsonl";
constexpr size_t kObjectInName = 50;
// Plans have their own limits for unreadable rows.
constexpr work::FailureLimit kAnyFailures{.percent = 100};

// copy.OBJECT.HASH: OBJECT for people; the hash identifies the call.
std::string NameOf(const CopyPlan& plan) {
  std::string object = plan.object.substr(0, kObjectInName);
  std::replace_if(
      object.begin(), object.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_'; }, '-');
  const std::string identity =
      plan.call + "\n" + plan.object + "\n" + plan.identity + "\n" + plan.place;
  return "copy." + object + "." + Sha256Hex(identity).substr(0, 24);
}

// Adds up rows.
class CopyWatch final : public work::WorkObserver {
 public:
  explicit CopyWatch(const std::function<void(int64_t)>& progress) : progress_(progress) {}

  // Adds what earlier holders of an item have copied.
  void Add(const work::ItemInfo& item) {
    const MutexLock lock(mutex_);
    total_ += rows_[item.name] = item.progress.counts.written;
  }

  void Acquired(const work::WorkItem& item, const pipeline::Progress& from) override {
    Report(item, from);
  }
  void Advanced(const work::WorkItem& item, const pipeline::Progress& progress) override {
    Report(item, progress);
  }

 private:
  void Report(const work::WorkItem& item, const pipeline::Progress& progress) {
    const MutexLock lock(mutex_);
    int64_t& known = rows_[item.name()];
    total_ += progress.counts.written - known;
    known = progress.counts.written;
    progress_(total_);
  }

  const std::function<void(int64_t)>& progress_;
  Mutex mutex_;
  std::map<std::string, int64_t> rows_ GUARDED_BY(mutex_);  // by item
  int64_t total_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

CopyRun::CopyRun(store::Store& store, Env& env, CopyPlan plan, const work::WorkTerms& terms)
    : store_(store), env_(env), plan_(std::move(plan)), terms_(terms), name_(NameOf(plan_)) {}

Result<std::optional<std::string>> CopyRun::Incarnation() {
  const auto info = work::ReadRun(store_, name_);
  if (!info && info.error().code == Code::kNotFound) return std::optional<std::string>();
  if (!info) return info.error();
  return std::optional(info->incarnation);
}

Result<bool> CopyRun::HasBegun() {
  MUSTER_ASSIGN(const auto incarnation, Incarnation());
  std::error_code failed;
  return incarnation && fs::is_directory(RunFolder() + "/" + *incarnation, failed);
}

Status CopyRun::Begin() {
  // The folder comes first, so that clean-up finds the run's name in it after a crash.
  MUSTER_TRY(MakePrivateFolders(RunFolder()));
  MUSTER_ASSIGN(std::optional<std::string> incarnation, Incarnation());
  std::error_code failed;
  if (incarnation && !fs::is_directory(RunFolder() + "/" + *incarnation, failed)) {
    // Another machine has the pieces, or they were deleted.
    MUSTER_TRY(work::RemoveRun(store_, name_, *incarnation));
    incarnation.reset();
  }
  if (incarnation) {
    // The engine makes a call in one process at a time: earlier holders are gone, or no longer
    // wanted.
    MUSTER_TRY(work::ReleaseAll(store_, name_));
  } else {
    const work::RunSpec spec{
        .name = name_, .source = plan_.source, .sink = plan_.place, .max_failures = kAnyFailures};
    MUSTER_TRY(work::CreateRun(store_, spec, terms_, env_));
    MUSTER_ASSIGN(incarnation, Incarnation());
    if (!incarnation) return Error{Code::kUnavailable, "run '" + name_ + "' does not exist yet"};
  }
  incarnation_ = *incarnation;
  MUSTER_TRY(MakePrivateFolders(PiecesFolder()));
  for (const auto& entry : fs::directory_iterator(RunFolder(), failed)) {
    if (entry.path().filename() != incarnation_) fs::remove_all(entry.path(), failed);
  }
  return RemoveOtherCalls();
}

Status CopyRun::RemoveOtherCalls() {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(plan_.folder, failed)) {
    const std::string run = entry.path().filename().string();
    if (run == name_) continue;
    const auto info = work::ReadRun(store_, run);
    if (info) MUSTER_TRY(work::RemoveRun(store_, run, info->incarnation));
    // Without its folder, a run that could not be looked up would never be removed.
    if (!info && info.error().code != Code::kNotFound && info.error().code != Code::kCorrupt) {
      return info.error();
    }
    fs::remove_all(entry.path(), failed);
  }
  return {};
}

Status CopyRun::Drive(pipeline::Source& source, const pipeline::Collection& collection,
                      const std::function<void(int64_t rows)>& progress,
                      const std::stop_token& stop) {
  pipeline::OneCollection object(source, collection);
  MUSTER_ASSIGN(const auto sink,
                pipeline::OpenSink(
                    InFolder(PiecesFolder(), std::string("jsonl:") + kRowsFolder + "/"), env_));
  // Only one process prepares the run; the folder of pieces on this machine needs its identity too.
  MUSTER_TRY(sink->Prepare(collection, /*evaluate=*/false));
  MUSTER_ASSIGN(const auto transforms, pipeline::ParseTransforms("", ""));
  MUSTER_ASSIGN(const auto letters,
                pipeline::OpenDeadLetters(PiecesFolder() + kLetters, plan_.run_name));
  pipeline::Throttle throttle(env_);
  pipeline::Pipeline pipeline{
      env_, object, *transforms, *sink, *letters, throttle, {.limits = sink->PreferredLimits()}};
  CopyWatch watch(progress);
  MUSTER_TRY(work::EachItem(store_, name_, [&](const work::ItemInfo& item) { watch.Add(item); }));
  const work::WorkerOptions options{.run = {.name = name_,
                                            .source = plan_.source,
                                            .sink = plan_.place,
                                            .max_failures = kAnyFailures},
                                    .terms = terms_,
                                    .worker = "copy-" + env_.NewId().substr(0, 8)};
  MUSTER_ASSIGN(const work::WorkerReport report,
                work::RunWorker(store_, pipeline, options, watch, stop));
  if (!report.all_done) return Error{Code::kCancelled, "stopped"};
  if (report.quarantined.empty()) return {};
  // By an earlier call.
  MUSTER_ASSIGN(const work::ItemInfo item,
                work::ReadItem(store_, name_, report.quarantined.front()));
  return Error{Code::kInternal, "item '" + item.name + "' of the copy: " + item.error};
}

Result<CopiedRows> CopyRun::Rows() {
  MUSTER_ASSIGN(const std::vector<work::ItemInfo> items, work::ItemsInOrder(store_, name_));
  CopiedRows rows{.pieces = {}, .counts = {}, .letters = PiecesFolder() + kLetters};
  const std::string folder =
      PiecesFolder() + "/" + kRowsFolder + "/" + SafeFileName(plan_.object) + "/";
  for (const work::ItemInfo& item : items) {
    rows.counts += item.progress.counts;
    if (item.progress.counts.written == 0) continue;
    if (item.partition.follows) {
      // A file cannot replace rows: it would hold both versions of each document.
      return Error{Code::kConflict,
                   std::to_string(item.progress.counts.written) + " documents of " + plan_.object +
                       " changed while it was copied",
                   "copy it while it is not written to, or copy a snapshot of it"};
    }
    rows.pieces.push_back(folder + SafeFileName(item.name) + ".jsonl");
  }
  return rows;
}

Status CopyRun::Remove() {
  // Not begun here: removes what an earlier process left of this call.
  if (incarnation_.empty()) {
    MUSTER_ASSIGN(const std::optional<std::string> stored, Incarnation());
    incarnation_ = stored.value_or("");
  }
  // If another process has started it over, its new incarnation stays.
  MUSTER_TRY(work::RemoveRun(store_, name_, incarnation_));
  MUSTER_TRY(RemoveOtherCalls());
  std::error_code failed;
  fs::remove_all(incarnation_.empty() ? RunFolder() : PiecesFolder(), failed);
  fs::remove(RunFolder(), failed);
  fs::remove(plan_.folder, failed);
  incarnation_.clear();
  return {};
}

}  // namespace muster::task
