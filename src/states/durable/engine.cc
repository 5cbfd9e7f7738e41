#include "states/durable/engine.h"

#include <algorithm>
#include <utility>

#include "core/guard.h"
#include "core/log.h"
#include "core/planted_bug.h"

namespace muster::states {
namespace {

constexpr size_t kMaxCachedInputs = 4;
constexpr milliseconds kFirstPoll{20};

}  // namespace

Driver::Driver(store::Store& store, Env& env, const std::vector<TaskExecutor*>& executors,
               const StatesOptions& options, MachineCache& machines, JsonataEngine* jsonata,
               DriverSignals& signals)
    : store_(store),
      env_(env),
      executors_(executors),
      options_(options),
      machines_(machines),
      jsonata_(jsonata),
      signals_(signals),
      codec_(store) {}

Result<bool> Driver::WorkOnce(std::stop_token stop) {
  auto drives = Claim(stop);
  if (!drives) return drives.error();
  if (drives->empty()) return false;
  size_t calls = 0;
  for (auto& drive : *drives) {
    const std::string& key = drive->record().record.key;
    const Status advanced = Guarded("execution '" + key + "'", [&] { return Advance(*drive); });
    if (!advanced) {
      if (!IsTransient(advanced.error().code) && advanced.error().code != Code::kLeaseLost) {
        Log(Level::kError, "an execution cannot be driven",
            {{"key", drive->record().record.key}, {"error", advanced.error().message}});
      }
      drive.reset();
      continue;
    }
    // A thread makes one call at a time: it returns the other flows for other threads.
    if (drive->next == Next::kCall && ++calls > 1)
      drive->next = Next::kRest, drive->due = store::Due::Unchanged();
  }
  std::erase(*drives, nullptr);
  // With calls, each thread claims one flow; without, twice as many each time.
  if (calls > 1) batch_ = 1;
  if (calls == 0) batch_ = std::min(options_.batch, batch_ * 2);
  if (!PLANTED_BUG(calls_are_not_stored_first) || calls == 0) MUSTER_TRY(CommitAll(*drives));
  if (calls > 1) signals_.SignalDue(calls - 1);
  // Notify parents first: they must not wait for the calls of others.
  std::stable_partition(drives->begin(), drives->end(),
                        [](const auto& drive) { return drive->next == Next::kNotifyParent; });
  for (auto& drive : *drives) {
    if (drive->next != Next::kNotifyParent && !parents_.empty())
      signals_.SignalDue(NotifyParents());
    if (drive->holder.Expired()) continue;
    const Status finished = Guarded("execution '" + drive->record().record.key + "'",
                                    [&] { return Finish(*drive, stop); });
    if (finished && drive->flow().wants == Wants::kChildren &&
        signals_.TakeEndedBranch(drive->record().record.key))
      parents_.insert(drive->record().record.key);
    if (!finished && finished.error().code != Code::kLeaseLost &&
        !IsTransient(finished.error().code)) {
      Log(Level::kError, "an execution cannot be driven",
          {{"key", drive->record().record.key}, {"error", finished.error().message}});
    }
  }
  NotifyParents();
  return true;
}

Result<std::vector<std::unique_ptr<Driver::Drive>>> Driver::Claim(std::stop_token stop) {
  const store::LeaseTerms terms{.lease = options_.lease, .max_lease = options_.max_lease};
  MUSTER_ASSIGN(std::vector<store::Lease> claimed, store::Lease::Claim(store_,
                                                                       {.kind = kKind,
                                                                        .queue = options_.queue,
                                                                        .owner = options_.owner,
                                                                        .limit = batch_,
                                                                        .terms = terms,
                                                                        .deferred = true},
                                                                       env_, std::move(stop)));
  std::vector<std::unique_ptr<Drive>> drives;
  for (store::Lease& lease : claimed) {
    const milliseconds granted = store::LeaseFor(lease.attempt(), terms.lease, terms.max_lease);
    const std::optional<WallTime> due = lease.record().due;
    if (due) env_.Set(*due - granted, lease.deadline() - granted);
    const std::string key = lease.key();
    auto drive = Guarded("execution '" + key + "'", [&] { return Open(std::move(lease)); });
    if (drive) {
      drives.push_back(*std::move(drive));
    } else if (!IsTransient(drive.error().code)) {
      // Left in the store for inspection; it is claimed again with growing pauses.
      Log(Level::kError, "a record cannot be read",
          {{"key", key}, {"error", drive.error().message}});
    }
  }
  return drives;
}

Result<std::unique_ptr<Driver::Drive>> Driver::Open(store::Lease lease) {
  MUSTER_ASSIGN(FlowRecord decoded, codec_.Decode(lease.record()));
  MUSTER_ASSIGN(auto definition, machines_.FindFor(decoded));
  auto drive = std::make_unique<Drive>(std::move(lease), std::move(decoded));
  if (!drive->record().info.input && definition->uses_context) MUSTER_TRY(LookAtExecution(*drive));
  drive->interpreter =
      std::make_unique<Interpreter>(definition, drive->record().info, env_, jsonata_, drive->log);
  return drive;
}

// Gives a branch the input of its execution, and finds out whether that still runs.
Status Driver::LookAtExecution(Drive& drive) {
  FlowRecord& branch = drive.record();
  const std::string& key = branch.within.empty() ? branch.execution : branch.within;
  MUSTER_ASSIGN(auto stored, store_.Get(kKind, key));
  if (!stored) return {};
  // Cached, since an input may be large and never changes. The start time distinguishes executions
  // that had the same name.
  Value& known = inputs_[{key, branch.info.start}];
  if (!known || !SaysRunning(stored->body)) {
    MUSTER_ASSIGN(FlowRecord execution, codec_.Decode(*std::move(stored)));
    known = std::move(execution.info.input);
    drive.orphaned = execution.flow.ended();
  }
  branch.info.input = known;
  if (inputs_.size() > kMaxCachedInputs) inputs_.clear();
  return {};
}

Result<bool> Driver::HasEnded(const std::string& key) {
  MUSTER_ASSIGN(auto stored, store_.Get(kKind, key));
  if (!stored) return true;
  if (SaysRunning(stored->body)) return false;
  MUSTER_ASSIGN(const FlowRecord record, codec_.Decode(*std::move(stored)));
  return record.flow.ended();
}

bool Driver::IsWanted(const FlowRecord& record) {
  // Remote work that an ended flow started is cancelled by a call, too.
  if (record.flow.ended()) return true;
  std::set<std::string> keys{record.record.key};
  // A branch created after its parent was ended would otherwise never be ended.
  if (!record.is_root() && !PLANTED_BUG(orphans_go_on))
    keys.insert({record.parent, record.execution});
  return std::ranges::none_of(
      keys, [&](const std::string& key) { return HasEnded(key).value_or(false); });
}

bool Driver::TimedOut(const Drive& drive) {
  const FlowRecord& record = drive.record();
  return record.is_root() && record.deadline && env_.WallNow() >= *record.deadline;
}

void Driver::TimeOut(Drive& drive) {
  EndFlow(drive.record(), *drive.interpreter, FlowStatus::kTimedOut,
          {.error = kTimeout, .cause = {}, .internal = false}, env_.WallNow());
}

Status Driver::Advance(Drive& drive) {
  Flow& flow = drive.flow();
  FlowRecord& record = drive.record();
  if (flow.ended()) {
    MUSTER_TRY(CleanUp(drive));
    drive.due = store::Due::Never();
    drive.next = Next::kNotifyParent;
    return {};
  }
  if (TimedOut(drive)) {
    TimeOut(drive);
    Decide(drive);
    return {};
  }
  if (drive.orphaned && !PLANTED_BUG(orphans_go_on)) {
    // Its parent will end it, level by level; until then it must not do anything.
    EndFlow(record, *drive.interpreter, FlowStatus::kAborted, {}, env_.WallNow());
    Decide(drive);
    return {};
  }
  switch (flow.wants) {
    case Wants::kTimer:
      drive.interpreter->TimerFired(flow);
      break;
    case Wants::kCallback: {
      MUSTER_ASSIGN(const bool answered, TakeCallback(drive));
      if (!answered) {
        Decide(drive);
        return {};
      }
      break;
    }
    case Wants::kChildren:
      if (flow.children->started > 0) MUSTER_TRY(SettleChildren(drive));
      break;
    case Wants::kTask:
      if (record.record.attempt > options_.max_attempts) {
        drive.interpreter->TaskFailed(
            flow,
            {.error = kTaskFailed,
             .cause = "the processes that made this call disappeared " +
                      std::to_string(options_.max_attempts) + " times before it was answered"});
      }
      break;
    case Wants::kNothing:
      break;
  }
  drive.interpreter->Run(flow);
  Decide(drive);
  return {};
}

// Holds the flow for what is to be done next.
void Driver::Hold(Drive& drive, Next next) {
  drive.release = false;
  drive.next = next;
  drive.due = store::Due::After(options_.lease);
}

// When the flow is due next, and what is to be done once that is written.
void Driver::Decide(Drive& drive) {
  Flow& flow = drive.flow();
  FlowRecord& record = drive.record();
  drive.release = true;
  drive.next = Next::kRest;
  // After a loss of power, starting branches and waiting for them is repeated in the same way.
  // Calls, answers, times and ends must not be lost.
  drive.deferred =
      !flow.ended() && (flow.wants == Wants::kChildren || PLANTED_BUG(starts_are_deferred));
  const WallTime now = env_.WallNow();
  if (flow.ended()) return DecideEnd(drive, now);
  std::optional<WallTime> due;
  switch (flow.wants) {
    case Wants::kTimer:
      due = flow.due;
      break;
    case Wants::kTask:
      due = flow.task->pending ? flow.due.value_or(now) : now;
      if (flow.task->pending && flow.task->deadline) due = std::min(*due, *flow.task->deadline);
      if (*due <= now) return Hold(drive, Next::kCall);
      break;
    case Wants::kCallback:
      due = NextCallbackPoll(record, now);
      drive.next = Next::kLookForCallback;
      break;
    case Wants::kChildren:
      if (flow.children->started < flow.children->total &&
          flow.children->open() < MostOpen(*flow.children))
        return Hold(drive, Next::kStartChildren);
      due = now + std::max(kFirstPoll, record.poll);
      break;
    case Wants::kNothing:
      break;
  }
  if (record.is_root() && record.deadline && (!due || *record.deadline < *due))
    due = record.deadline;
  drive.due = due ? store::Due::After(std::max(milliseconds(0), *due - now)) : store::Due::Never();
}

void Driver::DecideEnd(Drive& drive, WallTime now) {
  FlowRecord& record = drive.record();
  if (!record.stop) {
    record.stop = now;
    if (record.is_root()) drive.interpreter->End(record.flow);
  }
  drive.next = Next::kNotifyParent;
  drive.due = record.cleanup ? store::Due::AtOnce() : store::Due::Never();
}

Status Driver::Commit(Drive& drive) {
  return drive.holder.Commit(drive.holder.Prepare(drive.due, drive.release, drive.deferred));
}

Status Driver::CommitAll(std::vector<std::unique_ptr<Drive>>& drives) {
  // Before the write: the leases written now are counted from this time.
  const MonoTime asked = env_.MonoNow();
  std::vector<Holder::Pending> pending;
  std::vector<bool> together;
  std::vector<store::Change> changes;
  for (auto& drive : drives) {
    const bool returned = drive->due.kind == store::Due::Kind::kUnchanged;
    pending.push_back(returned
                          ? drive->holder.PrepareReturn()
                          : drive->holder.Prepare(drive->due, drive->release, drive->deferred));
    if (returned) drive->next = Next::kRest;
    // A record with parts is written separately, after them. None is written past its deadline: the
    // execution may have been ended and restarted without a change of this record.
    const bool late = drive->holder.Expired();
    together.push_back(pending.back().parts.empty() && !late);
    if (together.back()) changes.push_back(pending.back().ToChange());
  }
  std::vector<store::Written> answers;
  if (changes.size() > 1) {
    auto written = store_.Write(changes);
    if (written) answers = *std::move(written);
  }
  size_t answer = 0;
  for (size_t i = 0; i < drives.size(); ++i) {
    const store::Written written =
        together[i] && answer < answers.size() ? answers[answer++] : store::Written{};
    if (written.applied) {
      drives[i]->holder.Applied(std::move(pending[i]), written.version, asked);
      continue;
    }
    const Status committed = drives[i]->holder.Commit(std::move(pending[i]));
    if (!committed && committed.error().code != Code::kLeaseLost &&
        !IsTransient(committed.error().code)) {
      Log(Level::kError, "an execution cannot be stored",
          {{"key", drives[i]->record().record.key}, {"error", committed.error().message}});
    }
  }
  return {};
}

Status Driver::Finish(Drive& drive, std::stop_token stop) {
  for (;;) {
    switch (drive.next) {
      case Next::kRest:
        return {};
      case Next::kNotifyParent:
        if (!drive.record().is_root()) parents_.insert(drive.record().parent);
        return {};
      case Next::kCall:
        MUSTER_TRY(Call(drive, stop));
        break;
      case Next::kStartChildren:
        MUSTER_TRY(StartChildren(drive));
        break;
      case Next::kLookForCallback:
        return LookForCallback(drive);
    }
  }
}

}  // namespace muster::states
