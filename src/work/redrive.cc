#include "work/redrive.h"

#include <map>
#include <optional>
#include <set>

#include "core/mutex.h"
#include "core/secrets.h"
#include "core/sha256.h"
#include "muster/migrate.h"
#include "pipeline/pipeline.h"
#include "work/records.h"
#include "work/settled_letters.h"

namespace muster::work {
namespace {

// Transforms documents only if they have not been, and maps them to their targets.
class RedrivePlan final : public pipeline::TransformPlan {
 public:
  RedrivePlan(const pipeline::TransformPlan& transforms, const pipeline::LetterGroup& group)
      : transforms_(transforms), group_(group) {}

  Result<std::vector<std::unique_ptr<pipeline::Transform>>> Make() const override {
    if (!group_.transformed) return transforms_.Make();
    return std::vector<std::unique_ptr<pipeline::Transform>>();
  }
  std::string TargetName(const std::string& collection) const override {
    return group_.target.empty() ? transforms_.TargetName(collection) : group_.target;
  }
  bool EditsDocuments() const override {
    return !group_.transformed && transforms_.EditsDocuments();
  }

 private:
  const pipeline::TransformPlan& transforms_;
  const pipeline::LetterGroup& group_;
};

// A redrive has no observer.
class StopOnly final : public pipeline::WorkItemCursor {
 public:
  explicit StopOnly(std::stop_token stop) : stop_(std::move(stop)) {}
  Status Advance(pipeline::Progress& /*progress*/, pipeline::Writer& /*writer*/,
                 pipeline::Rest& /*rest*/) override {
    return {};
  }
  pipeline::Patience NextPatience() override { return {.stop = stop_}; }

 private:
  const std::stop_token stop_;
};

// Stores documents that fail again, as letters of the original failures, and tracks which those
// are. Thread-safe, except for Settled.
class AgainLetters final : public pipeline::DeadLetters {
 public:
  AgainLetters(pipeline::DeadLetters& letters, const std::vector<pipeline::LetterPlace>& taken)
      : letters_(letters) {
    for (const pipeline::LetterPlace& place : taken) taken_[std::to_string(place.line)] = &place;
  }

  Status Add(const pipeline::DeadLetter& letter) override {
    const pipeline::LetterPlace& place = *taken_.at(std::string(letter.document.position));
    pipeline::Document document = letter.document;
    const auto position = pipeline::UnescapeBytes(place.position);
    if (position) document.position = *position;
    MUSTER_TRY(letters_.Add({.collection = letter.collection,
                             .target = letter.target,
                             .item = place.item,
                             .document = document,
                             .reason = letter.reason,
                             .transformed = letter.transformed}));
    const MutexLock lock(mutex_);
    failed_.insert(place.identity);
    return {};
  }
  Status Flush() override { return letters_.Flush(); }

  // Those that did not fail.
  std::vector<SettledLetter> Settled() const {
    const MutexLock lock(mutex_);
    std::vector<SettledLetter> settled;
    for (const auto& [line, place] : taken_) {
      if (!failed_.contains(place->identity)) settled.push_back({place->identity, place->item});
    }
    return settled;
  }

 private:
  pipeline::DeadLetters& letters_;
  std::map<std::string, const pipeline::LetterPlace*> taken_;  // by line
  mutable Mutex mutex_;
  std::set<uint64_t> failed_ GUARDED_BY(mutex_);
};

// The redrive of one run.
struct Step {
  std::optional<SettledLetters> record;  // none: its counts do not change
  std::vector<SettledLetter> settled = {};
  int64_t skipped = 0;
};

class Redrive {
 public:
  Redrive(const RedriveRequest& request, Env& env, std::stop_token stop)
      : request_(request), env_(env), stop_(std::move(stop)) {}

  Result<RedriveReport> Run() {
    MUSTER_ASSIGN(log_, pipeline::DeadLetterLog::Open(request_.letters));
    report_.bad_lines = log_->bad_lines();
    MUSTER_ASSIGN(transforms_,
                  pipeline::ParseTransforms(request_.transforms, request_.transforms_file));
    MUSTER_TRY(FindSteps());
    MUSTER_TRY(CheckForms());
    MUSTER_ASSIGN(sink_, pipeline::OpenSink(request_.sink, env_));
    MUSTER_TRY(CheckTargets());
    int number = 0;
    for (const auto& [group, letters] : left_) MUSTER_TRY(Write(group, letters, number++));
    for (const std::string& target : targets_) MUSTER_TRY(sink_->Finish(target));
    for (auto& [run, step] : steps_) MUSTER_TRY(Keep(run, step));
    return std::move(report_);
  }

 private:
  Status FindSteps() {
    const std::string sink = Redact(request_.sink);
    for (const auto& [group, letters] : log_->letters()) {
      const auto [found, is_new] = steps_.try_emplace(group.run);
      if (is_new) MUSTER_TRY(FindStep(group.run, sink, found->second));
      const auto& record = found->second.record;
      for (const pipeline::LetterPlace& letter : letters) {
        const bool earlier = !request_.all && record && record->Contains(letter.identity);
        if (earlier) ++report_.earlier;
        if (!earlier) left_[group].push_back(letter);
      }
    }
    return {};
  }

  Status FindStep(const std::string& run, const std::string& sink, Step& step) {
    if (!request_.store || run == pipeline::kStandaloneRun || !CheckRunName(run)) return {};
    if (store_ == nullptr) {
      MUSTER_ASSIGN(store_, request_.store());
    }
    MUSTER_ASSIGN(const std::optional<store::Record> stored, store_->Get(kRunKind, run));
    if (!stored) {
      report_.notes.push_back("the store has no run '" + run + "': its counts stay as they are");
      return {};
    }
    MUSTER_ASSIGN(const RunBody body, RunBody::FromJson(stored->body));
    if (body.sink != sink) {
      report_.notes.push_back("run '" + run + "' goes to " + body.sink +
                              ": its counts stay as they are");
      return {};
    }
    if (!request_.transforms.empty() && Sha256Hex(request_.transforms) != body.transforms) {
      report_.notes.push_back(request_.transforms_file + " is not what run '" + run +
                              "' was begun with");
    }
    step.record.emplace(*store_, run);
    return step.record->Load();
  }

  Status CheckForms() const {
    if (!request_.transforms.empty()) return {};
    int64_t letters = 0;
    for (const auto& [group, ones] : left_) {
      if (!group.transformed) letters += static_cast<int64_t>(ones.size());
    }
    if (letters == 0) return {};
    return Error{Code::kInvalid,
                 std::to_string(letters) + " letters of " + request_.letters +
                     " failed before they were transformed",
                 "name the run's transforms, or corrected ones, with --transforms FILE"};
  }

  // A collection that the run renamed would silently be created under its old name.
  Status CheckTargets() {
    if (!request_.transforms.empty()) return {};
    for (const auto& [group, letters] : left_) {
      if (!group.target.empty()) continue;
      const auto source = log_->Read(letters);
      MUSTER_ASSIGN(const auto collections, source->Collections());
      for (const pipeline::Collection& collection : collections) {
        MUSTER_ASSIGN(const auto changes, sink_->Prepare(collection, true));
        if (changes.empty()) continue;
        return Error{Code::kInvalid,
                     "letters of " + request_.letters + " do not say where they go, and the sink " +
                         "has no '" + collection.name + "'",
                     "name the run's transforms with --transforms FILE, for its renames"};
      }
    }
    return {};
  }

  Status Write(const pipeline::LetterGroup& group,
               const std::vector<pipeline::LetterPlace>& letters, int number) {
    Step& step = steps_.at(group.run);
    const auto source = log_->Read(letters);
    const RedrivePlan plan(*transforms_, group);
    MUSTER_ASSIGN(const auto file,
                  pipeline::OpenDeadLetters(AgainPathOf(request_.letters), group.run));
    AgainLetters again(*file, letters);
    pipeline::Throttle throttle(env_);
    pipeline::Pipeline pipeline{.env = env_,
                                .source = *source,
                                .transforms = plan,
                                .sink = *sink_,
                                .dead_letters = again,
                                .throttle = throttle,
                                .options = {.limits = sink_->PreferredLimits()}};
    MUSTER_TRY(pipeline::CheckDeletes(*source, *sink_));
    MUSTER_ASSIGN(const auto collections, source->Collections());
    for (const pipeline::Collection& collection : collections) {
      MUSTER_ASSIGN(const pipeline::Counts counts, WriteCollection(pipeline, collection, number));
      step.skipped += counts.skipped;
      report_.counts += counts;
    }
    const std::vector<SettledLetter> settled = again.Settled();
    step.settled.insert(step.settled.end(), settled.begin(), settled.end());
    return {};
  }

  Result<pipeline::Counts> WriteCollection(pipeline::Pipeline& pipeline,
                                           const pipeline::Collection& collection, int number) {
    const pipeline::Collection target = pipeline.transforms.Target(collection);
    targets_.insert(target.name);
    MUSTER_TRY(sink_->Prepare(target, false));
    const std::string item = pipeline::WorkItemName{collection.name, number}.ToString();
    MUSTER_ASSIGN(const auto writer,
                  sink_->Open(target.name,
                              {.run = name_, .incarnation = name_, .alone = true, .item = item}));
    MUSTER_ASSIGN(const auto partitions, pipeline.source.Partitions(collection.name));
    StopOnly cursor(stop_);
    MUSTER_ASSIGN(
        const pipeline::Progress end,
        pipeline::MigrateShard(pipeline, partitions.at(0), item, {}, *writer, cursor, stop_));
    MUSTER_TRY(pipeline.dead_letters.Flush());
    MUSTER_TRY(writer->Finish());
    return end.counts;
  }

  Status Keep(const std::string& run, Step& step) {
    if (!step.record || step.settled.empty()) return {};
    const Status kept = step.record->Add(step.settled, step.skipped);
    if (!kept) {
      return kept.error().Within("the letters are written, but not recorded; redrive again");
    }
    report_.recorded.push_back(run);
    return {};
  }

  const RedriveRequest& request_;
  Env& env_;
  const std::stop_token stop_;
  const std::string name_ = "redrive-" + env_.NewId();
  store::Store* store_ = nullptr;  // once it is open
  std::optional<pipeline::DeadLetterLog> log_;
  std::unique_ptr<pipeline::TransformPlan> transforms_;
  std::unique_ptr<pipeline::Sink> sink_;
  std::map<std::string, Step> steps_;  // by run
  std::map<pipeline::LetterGroup, std::vector<pipeline::LetterPlace>>
      left_;  // still to be redriven
  std::set<std::string> targets_;
  RedriveReport report_;
};

}  // namespace

std::string AgainPathOf(const std::string& path) { return path + ".again"; }

Result<RedriveReport> RedriveDeadLetters(const RedriveRequest& request, Env& env,
                                         std::stop_token stop) {
  return Redrive(request, env, std::move(stop)).Run();
}

}  // namespace muster::work
