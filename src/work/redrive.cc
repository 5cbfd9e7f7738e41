#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "core/planted_bug.h"
#include "core/secrets.h"
#include "core/sha256.h"
#include "muster/work.h"
#include "pipeline/pipeline.h"
#include "work/records.h"
#include "work/redrive.h"
#include "work/redrive_page.h"
#include "work/redrive_steps.h"
#include "work/settled_letters.h"

namespace muster::work {
namespace {

class Redrive {
 public:
  // `sink` may be null, to open that of the request.
  Redrive(const RedriveRequest& request, std::unique_ptr<pipeline::Sink> sink, bool read_ahead,
          Env& env, std::stop_token stop)
      : request_(request),
        env_(env),
        stop_(std::move(stop)),
        read_ahead_(read_ahead),
        sink_(std::move(sink)) {}

  Result<RedriveReport> Run() {
    MUSTER_ASSIGN(log_, pipeline::DeadLetterLog::Open(request_.letters));
    report_.bad_lines = log_->bad_lines();
    MUSTER_ASSIGN(transforms_,
                  pipeline::ParseTransforms(request_.transforms, request_.transforms_file));
    if (!sink_) {
      MUSTER_ASSIGN(sink_, pipeline::OpenSink(request_.sink, env_));
    }
    steps_.emplace(request_, *log_, env_, report_);
    MUSTER_TRY(steps_->Find(!pipeline::WritesFiles(*sink_),
                            request_.transforms.empty()
                                ? ""
                                : Sha256Hex(request_.transforms + transforms_->Scripts())));
    MUSTER_TRY(CheckForms());
    MUSTER_TRY(CheckFiles());
    MUSTER_TRY(CheckTargets());
    MUSTER_TRY(CheckPlaces());
    for (RedriveStep* const step : steps_->all()) {
      const Status done = RedriveLetters(*step);
      // The next one need not wait. If this fails, it waits for the lease to end.
      if (step->lease) static_cast<void>(step->lease->Release());
      if (step->changed && step->in_run) report_.recorded.push_back(step->name);
      if (step->changed && !step->in_run) report_.record = steps_->file();
      MUSTER_TRY(done);
    }
    for (const std::string& target : targets_) MUSTER_TRY(sink_->Finish(target));
    return std::move(report_);
  }

 private:
  Status CheckForms() const {
    if (!request_.transforms.empty()) return {};
    int64_t letters = 0;
    for (const auto& [group, ones] : steps_->left()) {
      if (!group.transformed) letters += static_cast<int64_t>(ones.size());
    }
    if (letters == 0) return {};
    return Error{Code::kInvalid,
                 std::to_string(letters) + " letters of " + request_.letters +
                     " failed before they were transformed",
                 "name the run's transforms, or corrected ones, with --transforms FILE"};
  }

  // Nothing can be added to files that are complete.
  Status CheckFiles() {
    if (!pipeline::WritesFiles(*sink_)) return {};
    for (const auto& [group, letters] : steps_->left()) {
      const RedrivePlan plan(*transforms_, group);
      for (const pipeline::LetterPlace& letter : letters) {
        MUSTER_ASSIGN(const pipeline::Collection target, plan.Target({.name = letter.collection}));
        if (!files_.insert(target.name).second) continue;
        MUSTER_ASSIGN(const auto changes, sink_->Prepare(target, true));
        if (steps_->Of(group).in_run || changes.empty()) return FilesAreComplete(target.name);
      }
    }
    return {};
  }

  Error FilesAreComplete(const std::string& target) const {
    return Error{Code::kInvalid,
                 "letters cannot be redriven into files that are complete: '" + target + "' of " +
                     Redact(request_.sink),
                 "redrive into a new file or folder and use both, or correct the source or the "
                 "transforms and migrate again, to another place and under another name (--run)"};
  }

  // A collection that the run renamed would silently be created under its old name.
  Status CheckTargets() {
    if (!request_.transforms.empty()) return {};
    for (const auto& [group, letters] : steps_->left()) {
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

  // Documents of several targets must not replace each other. Where a run went, letters may follow.
  Status CheckPlaces() {
    if (request_.merge) return {};
    std::map<std::string, std::string> targets;  // by TargetKey
    std::set<std::string> known;
    for (const auto& [group, letters] : steps_->left()) {
      if (steps_->Of(group).in_run) continue;
      const RedrivePlan plan(*transforms_, group);
      for (const pipeline::LetterPlace& letter : letters) {
        MUSTER_ASSIGN(const pipeline::Collection target, plan.Target({.name = letter.collection}));
        if (!sink_->ReplacesById(target) || !known.insert(target.name).second) continue;
        const std::string place = sink_->Place(target.name);
        MUSTER_ASSIGN(const std::string key, pipeline::TargetKey(*sink_, target.name));
        const std::string& first = targets.emplace(key, target.name).first->second;
        if (first == target.name) continue;
        return Error{Code::kConflict,
                     "letters for " + first + " and " + target.name + " would both go to " + place +
                         ", where documents with the same id replace each other",
                     "name a sink in which each has its own target (no index after the host), or "
                     "use --merge if their ids are different"};
      }
    }
    return {};
  }

  Status RedriveLetters(RedriveStep& step) {
    MUSTER_TRY(steps_->FindFollowers(step));
    MUSTER_TRY(steps_->RecordBeside(step));
    if (step.record) {
      MUSTER_ASSIGN(step.lease,
                    RedriveLease::Acquire(*step.store, step.name, request_.worker, env_, stop_));
      // Another redrive may have settled letters since they were looked up.
      MUSTER_TRY(step.record->Load());
      MUSTER_TRY(SettleLeftPage(step));
    }
    for (const auto& [group, all] : log_->letters()) {
      if (&steps_->Of(group) != &step || RedriveSteps::IsFormer(step, group)) continue;
      std::vector<pipeline::LetterPlace> letters;
      for (const pipeline::LetterPlace& letter : all) {
        const bool earlier = steps_->IsEarlier(step, group, letter);
        if (earlier) ++report_.earlier;
        if (!earlier) letters.push_back(letter);
      }
      // A follower has read its documents later than the items before it.
      const auto replaces = [&](const pipeline::LetterPlace& letter) {
        return steps_->IsSettled(step, group, letter) || letter.follows ||
               step.followers.contains(letter.item);
      };
      // Without a lease each is an item of its own, and has no record that must stay small.
      const size_t most = step.lease ? kPageLetters : letters.size() + 1;
      for (const Page& page : PagesOf(letters, replaces, most)) {
        MUSTER_TRY(WritePage(group, page, step));
      }
    }
    return {};
  }

  // The page of a redrive that ended early: what the sink has of it is settled.
  Status SettleLeftPage(RedriveStep& step) {
    RedrivePageBody left = step.lease->page();
    if (left.letters.empty() || PLANTED_BUG(left_pages_are_forgotten)) return {};
    MUSTER_ASSIGN(const auto writer,
                  Open(left.target, FenceOf(step, step.run.since_ms, /*replaces=*/false), step));
    const std::optional<pipeline::Progress>& known = writer->Known();
    if (known && PageOf(*known) == left.number) {
      // The one that wrote it may not have lived to make it durable.
      MUSTER_TRY(writer->Write(pipeline::Batch{}, *known, {.stop = stop_}));
      MUSTER_TRY(writer->Flush());
      MUSTER_TRY(Settle(step, known->counts));
    }
    left.letters.clear();
    left.item_of.clear();
    return step.lease->Save(std::move(left));
  }

  // Records the letters of the lease's page as settled, as far as the sink's counts say.
  Status Settle(RedriveStep& step, const pipeline::Counts& counts) {
    const auto settled = SettledOf(step.lease->page(), counts.read);
    if (settled.empty()) return {};
    MUSTER_TRY(step.lease->KeepUp());
    const Status kept = step.record->Add(settled, counts);
    if (!kept) {
      return kept.error().Within("the letters are written, but not recorded; redrive again");
    }
    step.changed = true;
    return {};
  }

  // Letters are part of their run's order. They yield to what its items have written of the same
  // documents, or followers if the letters are theirs, and to every later migration.
  pipeline::Fence FenceOf(const RedriveStep& step, int64_t since_ms, bool replaces) {
    pipeline::Fence fence{.run = name_,
                          .incarnation = name_,
                          .alone = true,
                          .item = kRedriveItem,
                          .origin = kRedriveItem,
                          .since_ms = since_ms,
                          .rank = replaces ? pipeline::kFirstFollowerRank : 0,
                          .yields = true};
    if (!step.lease) {
      fence.item += "__" + std::to_string(items_++) + "__0";
      return fence;
    }
    fence.run = step.fence;
    fence.incarnation = step.run.incarnation;
    fence.adopts = step.run.adopts;
    fence.alone = false;
    fence.epoch = step.lease->epoch();
    fence.holder = step.lease->holder();
    return fence;
  }

  Result<std::unique_ptr<pipeline::Writer>> Open(const std::string& target,
                                                 const pipeline::Fence& fence,
                                                 const RedriveStep& step) {
    auto writer = sink_->Open(target, fence);
    // Another copy of the letters has been there.
    const bool is_other = !writer && step.record && !step.in_run &&
                          writer.error().code == Code::kConflict && !request_.all;
    if (is_other) return Lost(step);
    return writer;
  }

  Error Lost(const RedriveStep& step) const {
    return step.in_run ? LostRecords(step.name) : WrittenElsewhere(steps_->file());
  }

  Status WritePage(const pipeline::LetterGroup& group, const Page& page, RedriveStep& step) {
    const auto letters = log_->Read(page.letters);
    PageSource source(*letters, page.letters);
    const RedrivePlan plan(*transforms_, group);
    MUSTER_ASSIGN(const auto file,
                  pipeline::OpenDeadLetters(AgainPathOf(request_.letters), group.run));
    // Letters of earlier versions have no start of their own.
    const int64_t since_ms = group.since_ms != 0 ? group.since_ms : step.run.since_ms;
    AgainLetters again(*file, page.letters, since_ms, step.lease_or_null());
    pipeline::Throttle throttle(env_);
    pipeline::Pipeline pipeline{
        .env = env_,
        .source = source,
        .transforms = plan,
        .sink = *sink_,
        .dead_letters = again,
        .throttle = throttle,
        .options = {.limits = sink_->PreferredLimits(), .read_ahead = read_ahead_}};
    MUSTER_TRY(pipeline::CheckDeletes(source, *sink_));
    MUSTER_ASSIGN(const pipeline::Collection target, plan.Target({.name = page.collection}));
    targets_.insert(target.name);
    MUSTER_TRY(sink_->Prepare(target, false));
    // With --all after a loss of records it is unknown which letters were written before.
    MUSTER_ASSIGN(
        auto writer,
        Open(target.name, FenceOf(step, since_ms, page.replaces || step.replaces_all), step));
    if (step.lease && !step.replaces_all && HasLostRecords(*writer, step)) {
      if (!request_.all) return Lost(step);
      step.replaces_all = true;
      writer.reset();
      MUSTER_ASSIGN(writer, Open(target.name, FenceOf(step, since_ms, true), step));
    }
    pipeline::Partition partition{.collection = page.collection};
    if (step.lease) {
      MUSTER_TRY(BeginPage(page, target.name, *writer, step));
      partition.end = std::to_string(step.lease->page().number);
    }
    PageCursor cursor(step.lease_or_null(), stop_);
    MUSTER_ASSIGN(
        const pipeline::Progress end,
        pipeline::MigrateShard(pipeline, partition, kRedriveItem, {}, *writer, cursor, stop_));
    MUSTER_TRY(again.Flush());
    MUSTER_TRY(writer->Finish());
    report_.counts += end.counts;
    return step.lease ? EndPage(end.counts, step) : Status();
  }

  static bool HasLostRecords(const pipeline::Writer& writer, const RedriveStep& step) {
    const std::optional<pipeline::Progress>& known = writer.Known();
    return known && PageOf(*known) > step.lease->page().number;
  }

  // The page is in the store before any of it is in the sink.
  Status BeginPage(const Page& page, const std::string& target, const pipeline::Writer& writer,
                   RedriveStep& step) {
    int64_t last = step.lease->page().number;
    if (const auto& known = writer.Known()) last = std::max(last, PageOf(*known));
    RedrivePageBody body{.number = last + 1, .target = target};
    std::map<std::string, int64_t> items;
    for (const pipeline::LetterPlace& letter : page.letters) {
      const auto found = items.try_emplace(letter.item, static_cast<int64_t>(items.size()));
      if (found.second) body.items.push_back(letter.item);
      body.letters.push_back(letter.identity);
      body.item_of.push_back(found.first->second);
    }
    return step.lease->Save(std::move(body));
  }

  Status EndPage(const pipeline::Counts& counts, RedriveStep& step) {
    MUSTER_TRY(Settle(step, counts));
    return step.lease->Save({.number = step.lease->page().number});
  }

  const RedriveRequest& request_;
  Env& env_;
  const std::stop_token stop_;
  const bool read_ahead_;
  const std::string name_ = "redrive-" + env_.NewId();
  std::optional<pipeline::DeadLetterLog> log_;
  std::unique_ptr<pipeline::TransformPlan> transforms_;
  std::unique_ptr<pipeline::Sink> sink_;
  std::optional<RedriveSteps> steps_;
  std::set<std::string> targets_;
  std::set<std::string> files_;  // targets that were checked
  int items_ = 0;                // opened without a lease
  RedriveReport report_;
};

}  // namespace

std::string AgainPathOf(const std::string& path) { return path + ".again"; }

Result<RedriveReport> RedriveDeadLetters(const RedriveRequest& request, Env& env,
                                         std::stop_token stop) {
  return Redrive(request, nullptr, /*read_ahead=*/true, env, std::move(stop)).Run();
}

Result<RedriveReport> RedriveInto(const RedriveRequest& request,
                                  std::unique_ptr<pipeline::Sink> sink, Env& env,
                                  std::stop_token stop) {
  return Redrive(request, std::move(sink), /*read_ahead=*/false, env, std::move(stop)).Run();
}

}  // namespace muster::work
