#include "work/redrive.h"

#include <map>
#include <optional>
#include <set>

#include "base/secrets.h"
#include "base/sha256.h"
#include "muster/migrate.h"
#include "work/records.h"

namespace muster {
namespace {

// Transforms documents only if they have not been, and knows where they go.
class RedrivePlan final : public TransformPlan {
 public:
  RedrivePlan(const TransformPlan& transforms, const LetterGroup& group)
      : transforms_(transforms), group_(group) {}

  Result<std::vector<std::unique_ptr<Transform>>> Make() const override {
    if (!group_.transformed) return transforms_.Make();
    return std::vector<std::unique_ptr<Transform>>();
  }
  std::string TargetName(const std::string& collection) const override {
    return group_.target.empty() ? transforms_.TargetName(collection) : group_.target;
  }
  bool EditsDocuments() const override {
    return !group_.transformed && transforms_.EditsDocuments();
  }

 private:
  const TransformPlan& transforms_;
  const LetterGroup& group_;
};

// Nobody watches a redrive.
class StopOnly final : public WorkItemCursor {
 public:
  explicit StopOnly(std::stop_token stop) : stop_(std::move(stop)) {}
  Status Advance(Progress& /*progress*/, Writer& /*writer*/, Rest& /*rest*/) override { return {}; }
  Patience NextPatience() override { return {.stop = stop_}; }

 private:
  const std::stop_token stop_;
};

// What is redriven of one run.
struct Step {
  bool is_recorded = false;
  Record record;
  RedriveBody before;  // what was recorded of this file
  size_t after = 0;    // lines that are left out
  Counts counts = {};
};

class Redrive {
 public:
  Redrive(const RedriveRequest& request, Env& env, std::stop_token stop)
      : request_(request), env_(env), stop_(std::move(stop)) {}

  Result<RedriveReport> Run() {
    MUSTER_ASSIGN(log_, DeadLetterLog::Open(request_.letters));
    report_.bad_lines = log_->bad_lines();
    MUSTER_ASSIGN(transforms_, ParseTransforms(request_.transforms, request_.transforms_file));
    MUSTER_TRY(FindSteps());
    MUSTER_TRY(CheckForms());
    MUSTER_ASSIGN(sink_, OpenSink(request_.sink, env_));
    MUSTER_TRY(CheckTargets());
    const std::vector<LetterGroup> groups = log_->groups();
    for (size_t i = 0; i < groups.size(); ++i) {
      MUSTER_TRY(Write(groups[i], static_cast<int>(i)));
    }
    for (const std::string& target : targets_) MUSTER_TRY(sink_->Finish(target));
    for (auto& [run, step] : steps_) MUSTER_TRY(Keep(run, step));
    return std::move(report_);
  }

 private:
  Status FindSteps() {
    const std::string sink = Redact(request_.sink);
    for (const LetterGroup& group : log_->groups()) {
      const auto [found, is_new] = steps_.try_emplace(group.run);
      if (is_new) MUSTER_TRY(FindStep(group.run, sink, found->second));
      const int64_t left = log_->LettersAfter(group, found->second.after);
      report_.earlier += log_->LettersAfter(group, 0) - left;
    }
    return {};
  }

  Status FindStep(const std::string& run, const std::string& sink, Step& step) {
    if (!request_.store || run == kStandaloneRun || !CheckRunName(run)) return {};
    if (store_ == nullptr) {
      MUSTER_ASSIGN(store_, request_.store());
    }
    MUSTER_ASSIGN(const std::optional<Record> stored, store_->Get(kRunKind, run));
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
    if (request_.all) return {};
    step.is_recorded = true;
    step.record =
        Record{.kind = kRedriveKind, .queue = run, .key = RedriveKey(run, log_->fingerprint())};
    MUSTER_ASSIGN(const std::optional<Record> earlier, store_->Get(kRedriveKind, step.record.key));
    if (!earlier) return {};
    step.record = *earlier;
    MUSTER_ASSIGN(step.before, RedriveBody::FromJson(earlier->body));
    step.after = static_cast<size_t>(step.before.lines);
    return {};
  }

  bool IsLeft(const LetterGroup& group) const {
    return log_->LettersAfter(group, steps_.at(group.run).after) > 0;
  }

  Status CheckForms() const {
    if (!request_.transforms.empty()) return {};
    int64_t letters = 0;
    for (const LetterGroup& group : log_->groups()) {
      if (!group.transformed) letters += log_->LettersAfter(group, steps_.at(group.run).after);
    }
    if (letters == 0) return {};
    return Error{Code::kInvalid,
                 std::to_string(letters) + " letters of " + request_.letters +
                     " failed before they were transformed",
                 "name the run's transforms, or corrected ones, with --transforms FILE"};
  }

  // A name that the run has renamed would silently make a new collection.
  Status CheckTargets() {
    if (!request_.transforms.empty()) return {};
    for (const LetterGroup& group : log_->groups()) {
      if (!group.target.empty() || !IsLeft(group)) continue;
      const auto source = log_->Read(group, steps_.at(group.run).after);
      MUSTER_ASSIGN(const auto collections, source->Collections());
      for (const Collection& collection : collections) {
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

  Status Write(const LetterGroup& group, int number) {
    if (!IsLeft(group)) return {};
    Step& step = steps_.at(group.run);
    const auto source = log_->Read(group, step.after);
    const RedrivePlan plan(*transforms_, group);
    MUSTER_ASSIGN(const auto again, OpenDeadLetters(AgainPathOf(request_.letters), group.run));
    Throttle throttle(env_);
    Pipeline pipeline{.env = env_,
                      .source = *source,
                      .transforms = plan,
                      .sink = *sink_,
                      .dead_letters = *again,
                      .throttle = throttle,
                      .options = {.limits = sink_->PreferredLimits()}};
    MUSTER_TRY(CheckDeletes(*source, *sink_));
    MUSTER_ASSIGN(const auto collections, source->Collections());
    for (const Collection& collection : collections) {
      MUSTER_ASSIGN(const Counts counts, WriteCollection(pipeline, collection, number));
      step.counts += counts;
      report_.counts += counts;
    }
    return {};
  }

  Result<Counts> WriteCollection(Pipeline& pipeline, const Collection& collection, int number) {
    const Collection target = pipeline.transforms.Target(collection);
    targets_.insert(target.name);
    MUSTER_TRY(sink_->Prepare(target, false));
    const std::string item = WorkItemName{collection.name, number}.ToString();
    MUSTER_ASSIGN(const auto writer,
                  sink_->Open(target.name,
                              {.run = name_, .incarnation = name_, .alone = true, .item = item}));
    MUSTER_ASSIGN(const auto partitions, pipeline.source.Partitions(collection.name));
    StopOnly cursor(stop_);
    MUSTER_ASSIGN(const Progress end,
                  MigrateShard(pipeline, partitions.at(0), item, {}, *writer, cursor, stop_));
    MUSTER_TRY(pipeline.dead_letters.Flush());
    MUSTER_TRY(writer->Finish());
    return end.counts;
  }

  Status Keep(const std::string& run, Step& step) {
    if (!step.is_recorded || step.counts.read == 0) return {};
    RedriveBody body = step.before;
    body.file = request_.letters;
    body.lines = static_cast<int64_t>(log_->lines());
    body.counts += step.counts;
    body.transforms = request_.transforms.empty() ? "" : Sha256Hex(request_.transforms);
    body.ended_ms = env_.WallNow().time_since_epoch().count();
    step.record.body = body.ToJson();
    const Change change = Change::Put(step.record, Due::Never());
    const auto written = store_->Write({&change, 1});
    if (!written) {
      return written.error().Within("the letters are written, but not recorded; redrive again");
    }
    if (written->front().applied) {
      report_.recorded.push_back(run);
    } else {
      report_.notes.emplace_back("another redrive of this file has been recorded meanwhile");
    }
    return {};
  }

  const RedriveRequest& request_;
  Env& env_;
  const std::stop_token stop_;
  const std::string name_ = "redrive-" + env_.NewId();
  Store* store_ = nullptr;  // once it is open
  std::optional<DeadLetterLog> log_;
  std::unique_ptr<TransformPlan> transforms_;
  std::unique_ptr<Sink> sink_;
  std::map<std::string, Step> steps_;  // by run
  std::set<std::string> targets_;
  RedriveReport report_;
};

}  // namespace

std::string AgainPathOf(const std::string& path) { return path + ".again"; }

Result<RedriveReport> RedriveDeadLetters(const RedriveRequest& request, Env& env,
                                         std::stop_token stop) {
  return Redrive(request, env, std::move(stop)).Run();
}

}  // namespace muster
