#include <algorithm>
#include <charconv>

#include "cli/exit_codes.h"
#include "cli/progress.h"
#include "cli/replica_context.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "core/json.h"

namespace muster::cli {
namespace {

constexpr std::chrono::seconds kStopPatience{10};
constexpr milliseconds kLookAgain{100};

class ShownRebuild final : public replica::RebuildObserver {
 public:
  explicit ShownRebuild(Progress& progress) : progress_(progress) {}

  void Advanced(int64_t left) override {
    most_ = std::max(most_, left);
    progress_.Update(static_cast<uint64_t>(most_ - left), static_cast<uint64_t>(most_));
  }

 private:
  Progress& progress_;
  int64_t most_ = 0;
};

class Operation {
 public:
  Operation(const ReplicaCommandOptions& options, Context& context, OpenReplica open)
      : options_(options),
        context_(context),
        open_(std::move(open)),
        set_(open_.file.options.set) {}

  Result<int> Run() {
    if (options_.action == "scale") return Scale();
    if (options_.target.empty()) {
      return Error{Code::kInvalid, "'" + options_.action + "' needs a projection",
                   "name it after the file"};
    }
    if (options_.action == "forget") return Forget();
    MUSTER_ASSIGN(projection_, open_.file.Find(options_.target));
    if (options_.action == "pause" || options_.action == "resume") return Pause();
    if (options_.action == "reset") return Reset();
    if (options_.action == "adopt") return Adopt();
    if (options_.action == "skip") return Skip();
    if (options_.action == "replay") return Replay();
    if (options_.action == "audit") return Audited();
    return Rebuilt();
  }

 private:
  Result<int> Say(const std::string& what) {
    if (context_.json) {
      context_.out << ToJsonText(Json{{"set", set_}, {"done", what}}) << '\n';
    } else {
      context_.out << what << '\n';
    }
    return kDone;
  }

  std::string Named() const { return "projection " + options_.target + " of set " + set_; }

  Result<int> Scale() {
    if (options_.target == "all") {
      MUSTER_TRY(replica::ScaleSet(*open_.store, set_, std::nullopt));
      return Say("all workers of set " + set_ + " may be active");
    }
    int workers = 0;
    const std::string& text = options_.target;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), workers);
    if (error != std::errc() || end != text.data() + text.size() || workers < 1) {
      return Error{Code::kInvalid, "'" + text + "' is not a number of workers",
                   "write muster replica scale FILE N, or all"};
    }
    MUSTER_TRY(replica::ScaleSet(*open_.store, set_, workers));
    return Say("at most " + text + " workers of set " + set_ + " are active, others stand by");
  }

  Result<int> Pause() {
    const bool pause = options_.action == "pause";
    MUSTER_TRY(replica::PauseProjection(*open_.store, set_, options_.target, pause));
    if (!pause) return Say(Named() + " is resumed");
    MUSTER_ASSIGN(const auto going, AwaitPaused());
    if (going.empty()) return Say(Named() + " is paused");
    return Error{Code::kUnavailable,
                 Named() + " should be paused, but worker " + going.front() +
                     " has not stopped within " + std::to_string(kStopPatience.count()) + " s",
                 "it stops after its current batch: ask again later"};
  }

  // The workers that have not stopped in time.
  Result<std::vector<std::string>> AwaitPaused() {
    const MonoTime give_up = context_.env.MonoNow() + kStopPatience;
    while (true) {
      MUSTER_ASSIGN(auto going, replica::NotPausedYet(*open_.store, set_, options_.target));
      if (going.empty() || context_.env.MonoNow() >= give_up) return going;
      open_.store->Wait(replica::kReplicaKind, kLookAgain, {});
    }
  }

  Result<int> Reset() {
    MUSTER_TRY(
        replica::ResetProjection(*open_.store, *open_.log, *open_.model, set_, *projection_));
    return Say(Named() + " starts again from the first event");
  }

  Result<replica::DesiredState> Desired() {
    return replica::DesiredFor(*open_.store, set_, options_.target);
  }

  // The requested version, or the active one.
  Result<replica::Instance> Target() {
    MUSTER_ASSIGN(const replica::DesiredState desired, Desired());
    const int version = options_.version == 0 ? desired.active : options_.version;
    const auto& known = desired.versions;
    if (std::find(known.begin(), known.end(), version) == known.end()) {
      return Error{Code::kInvalid, Named() + " has no version " + std::to_string(version),
                   "'muster replica status' shows the existing ones"};
    }
    return replica::Instance{set_, options_.target, version};
  }

  Result<int> Skip() {
    MUSTER_ASSIGN(const replica::Instance instance, Target());
    if (!options_.stream.empty() && options_.position == 0) return SkipParkedStream(instance);
    if (options_.position < 1 || !options_.stream.empty()) {
      return Error{Code::kInvalid, "no event to skip was given",
                   "give its --position, or a parked --stream"};
    }
    MUSTER_TRY(
        replica::SkipEvent(*open_.store, *open_.log, *open_.model, instance, options_.position));
    return Say(Named() + " skips the event at position " + std::to_string(options_.position));
  }

  Result<int> SkipParkedStream(const replica::Instance& instance) {
    MUSTER_ASSIGN(const int64_t skipped, replica::SkipStream(*open_.store, *open_.log, *open_.model,
                                                             instance, options_.stream));
    MUSTER_TRY(Say(Named() + " leaves out " + std::to_string(skipped) +
                   " parked events of stream " + options_.stream));
    return skipped == 0 ? kNothingToDo : kDone;
  }

  Result<int> Replay() {
    MUSTER_ASSIGN(const replica::Instance instance, Target());
    MUSTER_ASSIGN(const int64_t asked,
                  replica::ReplayParked(*open_.store, *open_.model, instance, options_.stream));
    if (asked == 0) {
      MUSTER_TRY(Say(options_.stream.empty()
                         ? "no stream of " + Named() + " is parked"
                         : "stream " + options_.stream + " of " + Named() + " is not parked"));
      return kNothingToDo;
    }
    MUSTER_ASSIGN(const replica::DesiredState desired, Desired());
    return Say(std::to_string(asked) + " parked streams of " + Named() + " will be retried" +
               (desired.paused ? " when it is resumed" : ""));
  }

  Result<int> Adopt() {
    MUSTER_ASSIGN(const bool changed, replica::AdoptDefinition(*open_.store, set_, *projection_));
    MUSTER_ASSIGN(const replica::DesiredState desired, Desired());
    MUSTER_TRY(Say("version " + std::to_string(desired.active) + " of " + Named() +
                   (changed ? " is run by definition " : " is run already by definition ") +
                   replica::DefinitionHash(*projection_)));
    return changed ? kDone : kNothingToDo;
  }

  Result<int> Forget() {
    for (const auto& projection : open_.file.projections) {
      if (projection->name() != options_.target) continue;
      return Error{Code::kInvalid, Named() + " is in its file",
                   "remove it from the file first: workers would start it again"};
    }
    MUSTER_ASSIGN(const replica::DesiredState desired, Desired());
    MUSTER_TRY(replica::ForgetProjection(*open_.store, *open_.model, set_, options_.target));
    std::string tables = "its tables are kept";
    if (desired.versions.size() > 1) {
      tables += ", of version";
      for (const int version : desired.versions) {
        const bool is_first = version == desired.versions.front();
        tables += (is_first ? "s " : " and ") + std::to_string(version);
      }
      tables += ": drop all but version " + std::to_string(desired.active) + " yourself";
    }
    return Say(Named() + " and its checkpoints are removed; " + tables);
  }

  Result<int> Audited() {
    MUSTER_ASSIGN(const replica::Instance instance, Target());
    MUSTER_ASSIGN(const auto slots, open_.model->Slots(instance));
    const bool started =
        std::any_of(slots.begin(), slots.end(),
                    [](const replica::SlotState& slot) { return slot.position > 0; });
    if (!started) {
      MUSTER_TRY(Say(Named() + " has not started yet"));
      return kNothingToDo;
    }
    MUSTER_ASSIGN(const replica::AuditResult audit,
                  replica::Audit(*open_.log, *open_.model, instance));
    if (context_.json) {
      context_.out << ToJsonText(Json{{"set", set_},
                                      {"projection", options_.target},
                                      {"version", instance.version},
                                      {"events", audit.events},
                                      {"handled", audit.handled},
                                      {"parked", audit.parked},
                                      {"skipped", audit.skipped},
                                      {"wrong_slots", audit.wrong_slots}})
                   << '\n';
    } else {
      context_.out << Named() << " has handled " << audit.handled << " of " << audit.events
                   << " events up to its checkpoints, " << audit.parked << " are parked and "
                   << audit.skipped << " skipped; " << audit.wrong_slots.size()
                   << " slots differ from the log\n";
    }
    if (!audit.wrong_slots.empty()) return kFailed;
    return audit.parked > 0 ? kDoneWithRejects : kDone;
  }

  Result<int> Rebuilt() {
    const replica::ReplicaSet set{set_,         *open_.store,
                                  *open_.log,   open_.file.read_model,
                                  context_.env, std::chrono::seconds(options_.timeout)};
    if (options_.finish && options_.rollback) {
      return Error{Code::kInvalid, "--rollback and --finish are separate steps",
                   "go back first, then drop the other version"};
    }
    StopOnSignals signals("");
    if (options_.finish) {
      MUSTER_ASSIGN(const int version, replica::FinishRebuild(set, projection_));
      return Say("version " + std::to_string(version) + " of " + Named() + " is gone");
    }
    if (options_.rollback) {
      MUSTER_TRY(replica::RollBackRebuild(set, projection_, signals.Token()));
      return SayRolledBack();
    }
    Progress progress(context_.progress, context_.err, context_.env, "rebuild " + options_.target,
                      0, [] { return TerminalWidth(2); });
    MUSTER_TRY(WarnIfNoWorker(progress));
    ShownRebuild shown(progress);
    MUSTER_ASSIGN(const int version,
                  replica::RebuildProjection(set, projection_, shown, signals.Token()));
    progress.Finish();
    MUSTER_ASSIGN(const replica::DesiredState desired, Desired());
    const std::string hash = desired.Definition(version);
    return Say("version " + std::to_string(version) + " of " + Named() +
               (hash.empty() ? "" : ", built by definition " + hash + ",") +
               " is active; --rollback goes back, --finish drops the previous one");
  }

  Result<int> SayRolledBack() {
    MUSTER_ASSIGN(const replica::DesiredState desired, Desired());
    std::string text =
        "version " + std::to_string(desired.active) + " of " + Named() + " is active again";
    for (const int version : desired.versions) {
      if (version == desired.active) continue;
      text += "; version " + std::to_string(version) +
              " is kept up to date: rebuild makes it active again, --finish drops it";
    }
    return Say(text);
  }

  Status WarnIfNoWorker(Progress& progress) {
    MUSTER_ASSIGN(replica::SetView view, replica::ReadSet(*open_.store, set_));
    MUSTER_ASSIGN(const WallTime now, open_.store->Now());
    replica::ShowExpired(view, now);
    if (replica::CountAlive(view) > 0) return {};
    progress.Say("no worker of set " + set_ + " is alive: waiting for 'muster replica run'");
    return {};
  }

  const ReplicaCommandOptions& options_;
  Context& context_;
  OpenReplica open_;
  const std::string set_;
  std::shared_ptr<replica::Projection> projection_;
};

}  // namespace

Result<int> OperateReplica(const ReplicaCommandOptions& options, Context& context) {
  MUSTER_ASSIGN(OpenReplica open, OpenReplica::Open(options, context));
  return Operation(options, context, std::move(open)).Run();
}

}  // namespace muster::cli
