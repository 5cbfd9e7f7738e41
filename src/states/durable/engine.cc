#include "states/durable/engine.h"

#include <algorithm>
#include <utility>

#include "core/guard.h"
#include "core/json.h"
#include "core/log.h"
#include "core/planted_bug.h"
#include "core/record_version.h"
#include "states/run/runner.h"

namespace muster::states {
namespace {

constexpr size_t kMaxCachedMachines = 1'000;
constexpr size_t kMaxCachedInputs = 4;
constexpr milliseconds kFirstPoll{20};
constexpr std::chrono::hours kLongestCallbackPoll{1};

// Many branches that end at about the same time wake their parent once.
constexpr int64_t kFewChildren = 16;
constexpr milliseconds kGatherDelay{100};

}  // namespace

std::shared_ptr<const Definition> MachineCache::Known(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = machines_.find(key);
  return found == machines_.end() ? nullptr : found->second;
}

Result<std::shared_ptr<const Definition>> MachineCache::Find(const std::string& key) {
  if (auto known = Known(key)) return known;
  MUSTER_ASSIGN(const std::string text, FlowCodec(store_).LoadMachine(key));
  MUSTER_ASSIGN(auto definition, ReadDefinition(text, "definition " + key, jsonata_));
  Put(key, definition);
  return definition;
}

Result<std::shared_ptr<const Definition>> MachineCache::FindFor(const FlowRecord& record) {
  MUSTER_ASSIGN(auto definition, Find(record.machine));
  const auto& machines = definition->machines;
  const Flow& flow = record.flow;
  if (flow.machine < 0 || static_cast<size_t>(flow.machine) >= machines.size() ||
      !machines[static_cast<size_t>(flow.machine)].states.contains(flow.state)) {
    return Error{Code::kCorrupt, "the record '" + record.record.key + "' is in a state '" +
                                     flow.state + "' that its definition does not have"};
  }
  return definition;
}

void MachineCache::Put(const std::string& key, std::shared_ptr<const Definition> definition) {
  const std::lock_guard lock(mutex_);
  if (machines_.size() >= kMaxCachedMachines) machines_.clear();
  machines_.insert_or_assign(key, std::move(definition));
}

Driver::CallContext::CallContext(Driver& driver, Drive& drive, std::stop_token stop)
    : driver_(driver), drive_(drive), stop_(std::move(stop)), renewed_(driver.env_.MonoNow()) {}

bool Driver::CallContext::KeepAlive() {
  if (stop_.stop_requested()) stopped_ = true;
  if (stopped_ || lost_) return false;
  const auto& task = drive_.flow().task;
  const bool late = task && task->deadline && driver_.env_.WallNow() >= *task->deadline;
  if (late || driver_.TimedOut(drive_)) return false;
  if (driver_.env_.MonoNow() - renewed_ < driver_.options_.lease / 3) return true;
  renewed_ = driver_.env_.MonoNow();
  lost_ = !drive_.holder.Renew(driver_.options_.lease).has_value();
  return !lost_;
}

Driver::Driver(store::Store& store, Env& env, const std::vector<TaskExecutor*>& executors,
               const StatesOptions& options, MachineCache& machines, JsonataEngine* jsonata,
               Agenda& agenda)
    : store_(store),
      env_(env),
      executors_(executors),
      options_(options),
      machines_(machines),
      jsonata_(jsonata),
      agenda_(agenda),
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
    // One thread waits for one call at a time: the others are given back, for other threads.
    if (drive->next == Next::kCall && ++calls > 1)
      drive->next = Next::kRest, drive->due = store::Due::Unchanged();
  }
  std::erase(*drives, nullptr);
  // Where there are calls, each thread takes one; where there are none, ever more at once.
  if (calls > 1) batch_ = 1;
  if (calls == 0) batch_ = std::min(options_.batch, batch_ * 2);
  if (!PLANTED_BUG(calls_are_not_stored_first) || calls == 0) MUSTER_TRY(CommitAll(*drives));
  if (calls > 1) agenda_.Leave(calls - 1);
  // Nobody who waits for branches waits for the calls of others as well.
  std::stable_partition(drives->begin(), drives->end(),
                        [](const auto& drive) { return drive->next == Next::kTellParent; });
  for (auto& drive : *drives) {
    if (drive->next != Next::kTellParent && !parents_.empty()) agenda_.Leave(TellParents());
    if (drive->holder.Expired()) continue;
    const Status finished = Guarded("execution '" + drive->record().record.key + "'",
                                    [&] { return Finish(*drive, stop); });
    if (finished && drive->flow().wants == Wants::kChildren &&
        agenda_.TakeEnded(drive->record().record.key))
      parents_.insert(drive->record().record.key);
    if (!finished && finished.error().code != Code::kLeaseLost &&
        !IsTransient(finished.error().code)) {
      Log(Level::kError, "an execution cannot be driven",
          {{"key", drive->record().record.key}, {"error", finished.error().message}});
    }
  }
  TellParents();
  return true;
}

Result<std::vector<std::unique_ptr<Driver::Drive>>> Driver::Claim(std::stop_token stop) {
  const store::LeaseTerms terms{.lease = options_.lease, .max_lease = options_.max_lease};
  MUSTER_ASSIGN(std::vector<store::Lease> claimed, store::Lease::Claim(store_, env_,
                                                                       {.kind = kKind,
                                                                        .queue = options_.queue,
                                                                        .owner = options_.owner,
                                                                        .limit = batch_,
                                                                        .terms = terms,
                                                                        .deferred = true},
                                                                       std::move(stop)));
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
      // It stays in the store for people to look at, and comes back with ever longer pauses.
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

// What a branch sees of its execution, and whether that still runs.
Status Driver::LookAtExecution(Drive& drive) {
  FlowRecord& branch = drive.record();
  const std::string& key = branch.within.empty() ? branch.execution : branch.within;
  MUSTER_ASSIGN(auto stored, store_.Get(kKind, key));
  if (!stored) return {};
  // An input may be large, and never changes. A later execution of the same name starts later.
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
    drive.next = Next::kTellParent;
    return {};
  }
  if (TimedOut(drive)) {
    TimeOut(drive);
    Decide(drive);
    return {};
  }
  if (drive.orphaned && !PLANTED_BUG(orphans_go_on)) {
    // Branches are ended one level after another: this one need not work until it is its turn.
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

// When the flow is due next, and what is to be done once that is written.
void Driver::Decide(Drive& drive) {
  Flow& flow = drive.flow();
  FlowRecord& record = drive.record();
  drive.release = true;
  drive.next = Next::kRest;
  // Children are only begun and waited for: after a loss of power that is done again. Calls,
  // answers, times and ends are not.
  drive.deferred =
      !flow.ended() && (flow.wants == Wants::kChildren || PLANTED_BUG(starts_are_deferred));
  const WallTime now = env_.WallNow();
  std::optional<WallTime> due;
  if (flow.ended()) {
    if (!record.stop) {
      record.stop = now;
      if (record.is_root()) drive.interpreter->End(flow);
    }
    drive.next = Next::kTellParent;
    drive.due = record.cleanup ? store::Due::Now() : store::Due::Never();
    return;
  }
  switch (flow.wants) {
    case Wants::kTimer:
      due = flow.due;
      break;
    case Wants::kTask:
      if (flow.task->pending) {
        due = flow.due.value_or(now);
        if (flow.task->deadline && *flow.task->deadline < *due) due = flow.task->deadline;
        if (*due <= now) {
          drive.release = false;
          drive.next = Next::kCall;
          drive.due = store::Due::After(options_.lease);
          return;
        }
        break;
      }
      drive.release = false;
      drive.next = Next::kCall;
      drive.due = store::Due::After(options_.lease);
      return;
    case Wants::kCallback:
      due = flow.due;
      drive.next = Next::kLookForCallback;
      // The look that follows may not happen: a crash, or a store that does not answer.
      record.poll =
          std::max(options_.lease, std::min<milliseconds>(record.poll * 2, kLongestCallbackPoll));
      if (!PLANTED_BUG(callbacks_are_not_looked_for) && (!due || now + record.poll < *due))
        due = now + record.poll;
      break;
    case Wants::kChildren:
      if (flow.children->started < flow.children->total &&
          flow.children->open() < MostOpen(*flow.children)) {
        drive.release = false;
        drive.next = Next::kStartChildren;
        drive.due = store::Due::After(options_.lease);
        return;
      }
      due = now + std::max(kFirstPoll, record.poll);
      break;
    case Wants::kNothing:
      break;
  }
  if (record.is_root() && record.deadline && (!due || *record.deadline < *due))
    due = record.deadline;
  drive.due = due ? store::Due::After(std::max(milliseconds(0), *due - now)) : store::Due::Never();
}

Status Driver::Commit(Drive& drive) {
  return drive.holder.Commit(drive.holder.Prepare(drive.due, drive.release, drive.deferred));
}

Status Driver::CommitAll(std::vector<std::unique_ptr<Drive>>& drives) {
  std::vector<Holder::Pending> pending;
  std::vector<store::Change> changes;
  for (auto& drive : drives) {
    const bool returned = drive->due.kind == store::Due::Kind::kUnchanged;
    pending.push_back(returned
                          ? drive->holder.PrepareReturn()
                          : drive->holder.Prepare(drive->due, drive->release, drive->deferred));
    if (returned) drive->next = Next::kRest;
    // What needs parts is written by itself, in the right order.
    if (pending.back().parts.empty()) changes.push_back(pending.back().ToChange());
  }
  std::vector<store::Written> answers;
  const MonoTime asked = env_.MonoNow();
  if (changes.size() > 1) {
    auto written = store_.Write(changes);
    if (written) answers = *std::move(written);
  }
  size_t answer = 0;
  for (size_t i = 0; i < drives.size(); ++i) {
    const bool together = pending[i].parts.empty() && answer < answers.size();
    const store::Written written = together ? answers[answer++] : store::Written{};
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
      case Next::kTellParent:
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

TaskExecutor* Driver::ExecutorFor(const std::string& resource) const {
  for (TaskExecutor* executor : executors_) {
    if (executor->Runs(resource)) return executor;
  }
  return nullptr;
}

Status Driver::Call(Drive& drive, std::stop_token stop) {
  Flow& flow = drive.flow();
  Interpreter& interpreter = *drive.interpreter;
  TaskExecutor* executor = ExecutorFor(flow.task->resource);
  std::string resource = flow.task->resource;
  const bool waits_for_token =
      resource.ends_with(".waitForTaskToken") && flow.task->purpose == TaskProgress::Purpose::kTask;
  CallContext context(*this, drive, stop);
  if (flow.task->purpose == TaskProgress::Purpose::kWriteResults)
    MUSTER_TRY(interpreter.FillResults(flow, ResultsOf(drive)));
  TaskOutcome outcome = TaskFailure{kRuntime, "nothing here runs the resource '" + resource + "'"};
  const TaskCall call =
      CallOf(flow, interpreter.StateOf(flow), drive.record().info, env_.WallNow());
  const bool late_already = flow.task->deadline && env_.WallNow() >= *flow.task->deadline;
  if (executor != nullptr && !late_already) {
    auto answered = Guarded("the executor of '" + resource + "'", [&]() -> Result<TaskOutcome> {
      return flow.task->pending ? executor->Poll(call, flow.task->resume, context)
                                : executor->Start(call, context);
    });
    outcome = answered ? *std::move(answered)
                       : TaskOutcome(TaskFailure{kRuntime, answered.error().message});
  }
  if (context.lost()) return Error{Code::kLeaseLost, "another process has this execution"};
  const bool late = flow.task->deadline && env_.WallNow() >= *flow.task->deadline;
  if (context.stopped() && !late && !std::holds_alternative<TaskSuccess>(outcome)) {
    // Cut short by us: whoever comes next makes the same call again.
    drive.due = store::Due::Now();
    drive.release = true;
    drive.next = Next::kRest;
    return Commit(drive);
  }
  const Json was_pending = flow.task->pending ? flow.task->resume : Json();
  if (TimedOut(drive)) {
    TimeOut(drive);
  } else if (late && !std::holds_alternative<TaskSuccess>(outcome)) {
    const auto* pending = std::get_if<TaskPending>(&outcome);
    if (executor != nullptr && (pending != nullptr || flow.task->pending)) {
      executor->Cancel(call, pending != nullptr ? pending->resume : was_pending, context);
    }
    interpreter.TaskTimedOut(flow, false);
  } else if (auto* pending = std::get_if<TaskPending>(&outcome)) {
    if (!flow.task->pending) interpreter.TaskSubmitted(flow, pending->resume);
    flow.task->pending = true;
    flow.task->resume = std::move(pending->resume);
    flow.due = env_.WallNow() + std::max(milliseconds(1), pending->poll_after);
  } else if (auto* failure = std::get_if<TaskFailure>(&outcome)) {
    interpreter.TaskFailed(
        flow, {.error = std::move(failure->error), .cause = std::move(failure->cause)});
  } else if (waits_for_token) {
    interpreter.TaskSubmitted(flow, std::get<TaskSuccess>(outcome).output);
    flow.wants = Wants::kCallback;
    flow.due = flow.task->deadline;
    drive.record().poll = milliseconds(0);
    if (flow.task->heartbeat_s) {
      const WallTime beat = env_.WallNow() + std::chrono::seconds(*flow.task->heartbeat_s);
      if (!flow.due || beat < *flow.due) flow.due = beat;
    }
  } else {
    if (!flow.task->pending) interpreter.TaskSubmitted(flow, std::get<TaskSuccess>(outcome).output);
    interpreter.TaskSucceeded(flow, std::move(std::get<TaskSuccess>(outcome).output));
  }
  interpreter.Run(flow);
  Decide(drive);
  drive.deferred = PLANTED_BUG(answers_are_deferred);
  return Commit(drive);
}

// The answer may have come before this record said that it waits for one.
Status Driver::LookForCallback(Drive& drive) {
  drive.next = Next::kRest;
  if (PLANTED_BUG(callbacks_are_not_looked_for)) return {};
  const Flow& flow = drive.flow();
  MUSTER_ASSIGN(auto stored, store_.Get(kCallbackKind, flow.task->token));
  if (!stored) return {};
  // Due at once: whoever claims it takes the answer.
  store::Record next = drive.record().record;
  const store::Change change = store::Change::Put(next, store::Due::Now(), true);
  MUSTER_TRY(store_.Write({&change, 1}));
  return {};
}

Result<bool> Driver::TakeCallback(Drive& drive) {
  Flow& flow = drive.flow();
  const std::string token = flow.task->token;
  MUSTER_ASSIGN(auto stored, store_.Get(kCallbackKind, token));
  if (stored) {
    const Json answer = Json::parse(stored->body, nullptr, false);
    MUSTER_TRY(CheckVersion(VersionOf(answer), kCallbackVersion, "the answer to '" + token + "'"));
    if (answer.is_object() && answer.contains("output")) {
      drive.interpreter->TaskSucceeded(flow, answer["output"]);
    } else {
      drive.interpreter->TaskFailed(
          flow, {.error = answer.value("error", ""), .cause = answer.value("cause", "")});
    }
    return true;
  }
  const WallTime now = env_.WallNow();
  if (flow.task->deadline && now >= *flow.task->deadline) {
    drive.interpreter->TaskTimedOut(flow, false);
    return true;
  }
  if (flow.due && now >= *flow.due && flow.task->heartbeat_s) {
    MUSTER_ASSIGN(auto beat, store_.Get(kCallbackKind, token + "#heartbeat"));
    const Json body = beat ? Json::parse(beat->body, nullptr, false) : Json();
    const WallTime last =
        body.is_object() ? WallTime(milliseconds(body.value("time", int64_t{0}))) : WallTime{};
    const WallTime next = last + std::chrono::seconds(*flow.task->heartbeat_s);
    if (next <= now) {
      drive.interpreter->TaskTimedOut(flow, true);
      return true;
    }
    flow.due = flow.task->deadline && *flow.task->deadline < next ? *flow.task->deadline : next;
  }
  return false;
}

size_t Driver::TellParents() {
  const std::set<std::string> parents = std::exchange(parents_, {});
  for (const std::string& key : parents) TellParent(key);
  return parents.size();
}

void Driver::TellParent(const std::string& key) {
  agenda_.NoteEnded(key);
  auto parent = store_.Get(kKind, key);
  // Whoever has it will take the note.
  if (parent && *parent && !(*parent)->owner.empty()) return;
  agenda_.TakeEnded(key);
  // It looks by itself now and then: this only makes it look sooner.
  if (!parent || !*parent || !(*parent)->due) return;
  if (*(*parent)->due <= env_.WallNow()) return;
  auto decoded = codec_.Decode(**parent);
  if (!decoded || decoded->flow.wants != Wants::kChildren || !decoded->flow.children) return;
  const milliseconds delay =
      decoded->flow.children->open() <= kFewChildren ? milliseconds(0) : kGatherDelay;
  if (*(*parent)->due <= env_.WallNow() + delay) return;
  const store::Change change =
      store::Change::Put(**std::move(parent), store::Due::After(delay), true);
  static_cast<void>(store_.Write({&change, 1}));
}

}  // namespace muster::states
