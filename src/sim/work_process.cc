#include "sim/work_process.h"

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "pipeline/pipeline.h"

namespace muster::sim {
namespace {

using std::chrono::seconds;

constexpr nanoseconds kOperatorTime = seconds(30);
constexpr nanoseconds kCalm = seconds(10);
constexpr nanoseconds kStopTime = seconds(1);

class Letters final : public pipeline::DeadLetters {
 public:
  Letters(WorkScene& scene, std::set<std::string>& acknowledged, Env& env)
      : acknowledged_(acknowledged),
        calls_(scene.files->CallsOf(env)),
        file_(pipeline::NewDeadLetterFile(kLettersFile, "run", *calls_)) {}
  Status Add(const pipeline::DeadLetter& letter) override {
    MUSTER_TRY(file_->Add(letter));
    pending_.insert(std::string(letter.collection) + "/" + std::string(letter.document.id));
    return {};
  }
  Status Flush() override {
    MUSTER_TRY(file_->Flush());
    acknowledged_.merge(pending_);
    return {};
  }

 private:
  std::set<std::string>& acknowledged_;
  std::unique_ptr<FileCalls> calls_;
  std::unique_ptr<pipeline::DeadLetters> file_;
  std::set<std::string> pending_;
};

// A process's own state, from start to end.
class Observer final : public work::WorkObserver {
 public:
  Observer(WorkScene& scene, WorkLedger& ledger, Env& env, std::stop_token stop)
      : scene_(scene),
        sim_(scene.sim),
        ledger_(ledger),
        env_(env),
        stop_(std::move(stop)),
        stopping_(stop_, [this] {
          stopped_at_ = sim_.now();
          calm_since_ = sim_.calm_since();
        }) {}

  void Acquired(const work::WorkItem& item, const pipeline::Progress& /*from*/) override {
    for (const auto& [name, epoch] : holds_) {
      if (name == item.name()) CheckOther(item, epoch);
    }
    holds_.emplace(item.name(), item.fence().epoch);
    ledger_.leases.Holds(item);
    CheckStart(item);
  }
  void Advanced(const work::WorkItem& item, const pipeline::Progress& progress) override {
    ledger_.leases.Holds(item);
    const pipeline::Counts& counts = progress.counts;
    if (counts.read != counts.written + counts.skipped + counts.failed) {
      sim_.Violate("L", item.name() + ": what was read is not what was written, skipped or failed");
    }
  }
  void Renewed(const work::WorkItem& item) override {
    starting_.erase(item.fence().holder);
    ledger_.leases.Holds(item);
  }
  void Split(const work::WorkItem& item, const pipeline::Progress& /*progress*/) override {
    sim_.Sometimes("an item is split");
    ledger_.leases.Holds(item);
  }
  void Ended(const work::WorkItem& item, work::ShardOutcome outcome, const Error* why) override {
    if (const auto held = holds_.find({item.name(), item.fence().epoch}); held != holds_.end())
      holds_.erase(held);
    starting_.erase(item.fence().holder);
    if (!stop_.stop_requested() && ledger_.leases.WasStopped(item, why)) stopped_ = item.name();
    ledger_.Settled(env_, item, outcome, why);
  }

  // Its worker has returned. A failing one stops all of its slots.
  void Returned(bool failed) {
    if (!stopped_.empty() && !failed)
      sim_.Violate("V", stopped_ + " was stopped though its lease lasts");
    stopped_.clear();
    if (!holds_.empty() && !failed)
      sim_.Violate("L", holds_.begin()->first + " is still held when its worker has ended");
    holds_.clear();
    starting_.clear();
    if (stopped_at_) CheckEndOfStop(*stopped_at_);
  }

 private:
  struct Start {
    std::string name;
    nanoseconds since{0};
    bool suspect = false;
  };

  // An item that may have killed its process starts alone, so that it alone is to blame if the
  // process dies again. Faults may make others wait for longer than they have to.
  void CheckStart(const work::WorkItem& item) {
    const bool suspect = ledger_.IsSuspect(work::ItemKey("run", item.name()));
    for (const auto& [holder, other] : starting_) {
      if (!suspect && !other.suspect) continue;
      const bool calm = sim_.calm_since() + kCalm < other.since &&
                        sim_.now() < other.since + scene_.terms.lease / 2;
      if (calm && !scene_.went_back)
        sim_.Violate("B", item.name() + " starts beside " + other.name +
                              ", and one of them may have killed its process");
    }
    if (suspect) sim_.Sometimes("an item that may have killed its process starts alone");
    starting_[item.fence().holder] = {item.name(), sim_.now(), suspect};
  }

  // A slot acquires an item that another slot of its worker has not released, and so must have
  // lost.
  void CheckOther(const work::WorkItem& item, int64_t epoch) {
    sim_.Sometimes("a slot acquires what another of its worker has lost");
    if (!scene_.went_back && epoch == item.fence().epoch)
      sim_.Violate("F", item.name() + " is held by two slots of a worker");
  }

  // If nothing else goes wrong, a worker that is asked to stop releases everything in time.
  void CheckEndOfStop(nanoseconds stopped_at) {
    if (sim_.calm_since() != calm_since_ || stopped_at < calm_since_ + kCalm) return;
    sim_.Sometimes("17 asked to stop while nothing else goes wrong");
    if (sim_.now() > stopped_at + kStopTime + 2 * scene_.pace)
      sim_.Violate("V", "a worker was asked to stop, and went on");
  }

  WorkScene& scene_;
  Simulation& sim_;
  WorkLedger& ledger_;
  Env& env_;
  const std::stop_token stop_;
  std::optional<nanoseconds> stopped_at_;
  nanoseconds calm_since_{0};                             // when it was stopped
  std::multiset<std::pair<std::string, int64_t>> holds_;  // names and epochs
  std::map<std::string, Start> starting_;                 // items without progress, by holder
  std::string stopped_;                                   // an item stopped during its lease
  std::stop_callback<std::function<void()>> stopping_;
};

// An operator checks from time to time whether finished work is still there.
bool MayGoBackYet(const WorkScene& scene) {
  return scene.goes_back && scene.sim.now() < Simulation::kFaultTime + 2 * kLongestLoss;
}

}  // namespace

void RunWorkProcess(const std::string& name, int slots, WorkScene& scene, WorkLedger& ledger,
                    std::set<std::string>& acknowledged, Env& env, std::stop_token stop) {
  const std::unique_ptr<pipeline::Sink> sink = scene.NewSink(env);
  WorldSource source(scene.world, scene.sim);
  Letters letters(scene, acknowledged, env);
  pipeline::Throttle throttle(env);
  const auto transforms = pipeline::ParseTransforms("", "").value();
  pipeline::Pipeline pipeline{.env = env,
                              .source = source,
                              .transforms = *transforms,
                              .sink = *sink,
                              .dead_letters = letters,
                              .throttle = throttle,
                              .options = {.limits = scene.world.limits(), .read_ahead = false}};
  Observer observer(scene, ledger, env, stop);
  work::WorkerOptions options{
      .run = {.name = "run"}, .terms = scene.terms, .worker = name, .slots = slots};
  Simulation& sim = scene.sim;
  while (!stop.stop_requested()) {
    options.run.new_incarnation = std::exchange(scene.new_incarnation, false);
    options.run.max_failures = scene.max_failures;
    const auto ended = work::RunUnwatchedWorker(*scene.store, pipeline, options, observer, stop);
    observer.Returned(!ended.has_value());
    if (ended && ended->all_done) {
      scene.is_finished = true;
      if (!MayGoBackYet(scene)) return;
      env.Sleep(kOperatorTime, stop);
    } else if (ended) {
      if (!stop.stop_requested()) sim.Violate("V", name + " ended before all was done");
    } else if (ended.error().hint == work::kStoppedHint) {
      // An operator raises the failure limit.
      sim.Note("stopped: " + ended.error().message);
      sim.Sometimes("74 a run is stopped, for too many of its documents fail");
      env.Sleep(sim.random().UpTo(kOperatorTime), stop);
      scene.max_failures = work::FailureLimit{.documents = 1'000};
    } else if (ended.error().code == Code::kIncompatible && scene.went_back) {
      // An operator reads the message and follows it.
      sim.Note("halts: " + ended.error().message);
      sim.Sometimes("a worker halts loudly, and a new incarnation goes on");
      env.Sleep(sim.random().UpTo(kOperatorTime), stop);
      scene.new_incarnation = true;
    } else if (!IsTransient(ended.error().code)) {
      return sim.Violate("V", name + " gave up: " + ended.error().ToString());
    }
  }
}

}  // namespace muster::sim
