#include "sim/plan_world.h"

#include "core/append_once.h"
#include "core/json_fields.h"
#include "sim/stored_flow.h"
#include "states/states.h"

namespace muster::sim {
namespace {

using states::FlowStatus;
using std::chrono::seconds;

constexpr int kNotifyRetries = 5;  // as the compiler has it
constexpr char kNotifications[] = "notifications.jsonl";

std::string ExecutionOf(const std::string& token) { return token.substr(0, token.find(':')); }
int64_t RetryOf(const std::string& token) { return std::stoll(token.substr(token.rfind(':') + 1)); }

Json ParseFlow(const std::string& body) {
  Json json = Json::parse(body, nullptr, false);
  return json.contains("flow") ? std::move(json["flow"]) : Json::object();
}
// Whether it is a line of its own: nothing is before or after it.
bool HasLine(const std::string& content, const std::string& line) {
  return content.starts_with(line + "\n") || content.find("\n" + line + "\n") != std::string::npos;
}
std::vector<std::string> ExecutionsIn(const std::string& body) {
  std::vector<std::string> all;
  store::Record record;
  record.key = PlanWorld::kMigration;
  record.body = body;
  const auto run = plan::ReadRunBody(record);
  for (const plan::Attempt& attempt : run.value().attempts) all.push_back(attempt.execution);
  return all;
}

}  // namespace

// What tasks call: remote, and remembers its requests.
class PlanWorld::Executor final : public states::TaskExecutor {
 public:
  explicit Executor(PlanWorld& world) : world_(world) {}

  bool Runs(std::string_view resource) const override { return resource.starts_with("muster:"); }

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override {
    world_.drivers_.CheckCall(call);
    if (world_.late_starts_.contains(call.token))
      world_.Violate("R", call.state + " is called again, but had succeeded");
    if (!world_.started_.contains(call.token))
      world_.Violate("H", call.token + " was called before its start was stored");
    if (world_.reached_.contains(call.token))
      world_.sim_.Sometimes("44 a call whose answer is unknown is made again");
    const auto task = world_.tasks_.find(call.state);
    const bool known = task != world_.tasks_.end();
    if (known && task->second.slow) {
      // Longer than a lease: only KeepAlive holds it.
      for (nanoseconds slept{0}; slept < world_.terms_.lease * 8 / 5; slept += seconds(4)) {
        if (!context.KeepAlive()) return states::TaskFailure{"Cancelled", ""};
        context.env().Sleep(seconds(4), {});
      }
    }
    if (known && task->second.pending) {
      if (auto reached = Reach(call, context); !reached) return reached.error();
      return states::TaskPending{{{"job", call.token}}, seconds(7)};
    }
    return Ask(call, context);
  }

  states::TaskOutcome Poll(const states::TaskCall& call, const Json& resume,
                           states::TaskContext& context) override {
    if (resume.value("job", "") != call.token)
      world_.Violate("H", call.token + " is asked about by what another has started");
    return Ask(call, context);
  }

  void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}

 private:
  states::TaskOutcome Ask(const states::TaskCall& call, states::TaskContext& context) {
    if (call.resource == "muster:notify" && world_.files_) return world_.Record(call, context);
    const auto reached = Reach(call, context);
    if (!reached) return reached.error();
    if (call.resource == "muster:notify" && !*reached)
      return states::TaskFailure{"Notify.Failed", "the target does not answer"};
    return world_.AnswerOf(call);
  }

  // Until the service has responded. It may receive a call after the caller has gone, so it must
  // not refer to it.
  Expected<bool, states::TaskFailure> Reach(const states::TaskCall& call,
                                            states::TaskContext& context) {
    const std::string dedupe =
        call.resource == "muster:notify" ? call.input.value("dedupe", "") : "";
    for (;;) {
      auto reached = world_.wire_.Call<bool>(
          "call " + call.state, true,
          [world = &world_, token = call.token, dedupe](bool) -> Result<bool> {
            world->reached_.insert(token);
            return dedupe.empty() || world->Deliver(dedupe);
          });
      if (reached) return *reached;
      if (!context.KeepAlive()) return Unexpected(states::TaskFailure{"Cancelled", ""});
      context.env().Sleep(seconds(1), {});
    }
  }

  PlanWorld& world_;
};

PlanWorld::PlanWorld(Simulation& sim)
    : sim_(sim),
      flows_(ParseFlow),
      executions_(ExecutionsIn),
      wire_(sim),
      drivers_(sim, kMigration) {
  if (sim.Allows(Fault::kFailedSync) && sim.RandomOf(Fault::kFailedSync).OneIn(2))
    files_ = std::make_unique<SimFiles>(sim);
  DrawPlan();
  inputs_ = {{"tenantId", "t"}, {"migrationId", kMigration}, {"environment", "dev"}};
  target_down_ = sim.random().OneIn(3) ? sim.random().Between(1, 12) : 0;
  store_ = std::make_unique<FaultyStore>(
      sim, StoreObserver{.sends = [this](const store::Change& change) { drivers_.Sends(change); },
                         .changed = [this](const store::Change& change,
                                           const std::optional<store::Record>& before,
                                           const std::optional<store::Record>& after,
                                           bool) { Changed(change, before, after); },
                         .claimed = [this](const store::ClaimRequest& request,
                                           const std::vector<store::Record>& before,
                                           const std::vector<store::Record>& taken,
                                           bool) { drivers_.Claimed(request, before, taken); }});
  if (sim.random().OneIn(2)) store_->MayLosePower();
}

std::unique_ptr<states::TaskExecutor> PlanWorld::NewExecutor() {
  return std::make_unique<Executor>(*this);
}

bool PlanWorld::Succeeds(const Task& task, const std::string& execution, int64_t retry) const {
  if (task.broken && execution == FirstExecution()) return false;
  return retry >= task.busy;
}

states::TaskOutcome PlanWorld::AnswerOf(const states::TaskCall& call) const {
  const auto task = tasks_.find(call.state);
  if (task == tasks_.end()) return states::TaskSuccess{Json::object()};
  if (Succeeds(task->second, call.execution, RetryOf(call.token)))
    return states::TaskSuccess{{{"rows", task->second.rows}}};
  return states::TaskFailure{"Busy", "try again"};
}

// The notification target's response. The key identifies repeats.
bool PlanWorld::Deliver(const std::string& dedupe) {
  if (target_down_ > 0) {
    --target_down_;
    ++refused_[dedupe];
    sim_.Sometimes("47 the target of a notification is down");
    return false;
  }
  if (++delivered_[dedupe] > 1) sim_.Sometimes("47 a notification arrives again with the same key");
  return true;
}

// Appends a notification to a file, like `muster run`. Acknowledged lines are on disk.
states::TaskOutcome PlanWorld::Record(const states::TaskCall& call, states::TaskContext& context) {
  const std::string dedupe = call.input.value("dedupe", "");
  const std::string key = "{\"dedupe\":" + ToJsonText(Json(dedupe)) + ",";
  const std::string line = key + "\"subject\":\"it failed\"}";
  const auto calls = files_->CallsOf(context.env());
  const Status appended = AppendOnce(kNotifications, line, key, *calls);
  if (!appended) {
    ++refused_[dedupe];
    return states::TaskFailure{"Notify.Failed", appended.error().message};
  }
  ++delivered_[dedupe];
  recorded_.insert(line);
  sim_.Sometimes("47 a notification is appended to a file");
  if (!HasLine(files_->OnDisk(kNotifications), line))
    Violate("L", "the notification of " + dedupe + " was acknowledged, but is not on disk");
  return states::TaskSuccess{Json::object()};
}

void PlanWorld::CheckFile() {
  for (const std::string& line : recorded_) {
    if (!HasLine(files_->Content(kNotifications), line))
      Violate("L", "a notification is lost: " + line);
  }
}

void PlanWorld::Changed(const store::Change& change, const std::optional<store::Record>& before,
                        const std::optional<store::Record>& after) {
  drivers_.Changed(change, before, after);
  if (!after || (before && before->body == after->body)) return;
  if (change.record.kind == plan::kRunKind && before) RunChanged(*before, *after);
  if (change.record.kind == states::kKind) FlowChanged(before, *after);
}

void PlanWorld::RunChanged(const store::Record& before, const store::Record& after) {
  const Json was = Json::parse(before.body);
  const Json is = Json::parse(after.body);
  if (is["attempt"] != was["attempt"].get<int64_t>() + 1)
    Violate("R", "attempt " + was["attempt"].dump() + " is followed by " + is["attempt"].dump());
  if (after.owner != before.owner)
    Violate("R", after.owner + " began an attempt of a run that " + before.owner + " drives");
  const auto status = StatusOf(was["execution"]);
  if (status == FlowStatus::kRunning)
    Violate("R", "an attempt was begun while the one before it went on");
  if (status == FlowStatus::kSucceeded) Violate("P", "a completed run was begun again");
  if (is["hash"] != was["hash"]) Violate("R", "a run goes on by another plan");
}

void PlanWorld::FlowChanged(const std::optional<store::Record>& before,
                            const store::Record& after) {
  const Json& flow = FlowIn(after);
  if (!flow.contains("status")) return Violate("H", after.key + " is too large to be looked into");
  const std::string token = TokenIn(flow);
  if (before) {
    const Json& old = FlowIn(*before);
    const std::string was = TokenIn(old);
    if (StatusIn(old) != FlowStatus::kRunning && StatusIn(old) != StatusIn(flow))
      Violate("P", after.key + " had ended and was changed");
    if (!was.empty() && was != token && StatusIn(flow) != FlowStatus::kAborted)
      Ended(was, old["state"]);
    if (before->epoch > 1 && old.contains("backing_off"))
      sim_.Sometimes("44 a backoff survives a change of hands");
    if (before->epoch > 1 && old["state"].get<std::string>().starts_with("Notify"))
      sim_.Sometimes("44 a caught failure changes hands");
  }
  if (!token.empty() && started_.insert(token).second) Began(token, flow["state"]);
}

// Whether a task that depends on this one may begin.
bool PlanWorld::MayFollow(const Task& earlier, const std::string& execution) const {
  if (done_.contains(earlier.key) || late_.contains(earlier.key)) return true;
  const auto provisional = provisional_.find(execution);
  if (provisional != provisional_.end() && provisional->second.contains(earlier.key)) return true;
  const auto failed = failed_.find(execution);
  return plan_.on_failure == plan::FailurePolicy::kContinue && failed != failed_.end() &&
         failed->second.contains(earlier.key);
}

void PlanWorld::Began(const std::string& token, const std::string& state) {
  const auto found = tasks_.find(state);
  if (found == tasks_.end()) return;
  const Task& task = found->second;
  const std::string execution = ExecutionOf(token);
  // A process paused between checking its lease and a write may store the start of a task after
  // others have ended its execution and done the task. It must not make the call.
  if (done_.contains(task.key)) late_starts_.insert(token);
  if (RetryOf(token) > task.most_retries) Violate("R", state + " was retried too often");
  if (execution != FirstExecution() && !done_.empty())
    sim_.Sometimes("a later attempt does what did not succeed");
  CheckPools(execution, task);
  for (const auto& [other_state, other] : tasks_) {
    const bool before = order_->IsBefore(other.rank, task.rank) ||
                        (other.rank == task.rank && other.extracts && !task.extracts);
    if (before && !MayFollow(other, execution))
      Violate("R", state + " was started before " + other_state + " was done");
  }
}

// No more tasks of this kind are in progress than allowed.
void PlanWorld::CheckPools(const std::string& execution, const Task& task) {
  const auto most = task.extracts ? plan_.pools.flows : plan_.pools.jobs;
  if (!most) return;
  int64_t under_way = 0;
  const auto records = store_->Truth().Scan(states::kKind, "", "", store::kMaxBatch).value();
  for (const store::Record& record : records) {
    const Json& flow = FlowIn(record);
    const auto other = tasks_.find(flow.value("state", ""));
    if (other == tasks_.end() || other->second.extracts != task.extracts) continue;
    if (ExecutionOf(TokenIn(flow)) == execution && StatusIn(flow) == FlowStatus::kRunning)
      ++under_way;
  }
  if (under_way > *most)
    Violate("B", std::to_string(under_way) + " tasks are under way where " + std::to_string(*most) +
                     " may be");
}

// Whether everything a script reads has been extracted: the objects of its rank.
bool PlanWorld::HasItsObjects(const Task& task) const {
  if (task.extracts) return true;
  for (const auto& [state, other] : tasks_) {
    if (!other.extracts || other.rank != task.rank) continue;
    if (!done_.contains(other.key) && !late_.contains(other.key)) return false;
  }
  return true;
}

// The response to a call was stored.
void PlanWorld::Ended(const std::string& token, const std::string& state) {
  reconciled_.insert(state);
  const auto found = tasks_.find(state);
  if (found == tasks_.end()) return;
  const Task& task = found->second;
  const std::string execution = ExecutionOf(token);
  if (!Succeeds(task, execution, RetryOf(token))) {
    if (RetryOf(token) == task.most_retries) failed_[execution].insert(task.key);
    return;
  }
  reconciled_.erase(reconcile_states_[task.rank]);
  if (!HasItsObjects(task)) {
    provisional_[execution].insert(task.key);
    return;
  }
  // Results stored after a cancel may be too late for the next attempt.
  (StatusOf(execution) == FlowStatus::kRunning ? done_ : late_).insert(task.key);
}

std::optional<states::ExecutionStatus> PlanWorld::StatusOf(const std::string& execution) {
  const auto stored = store_->Truth().Get(states::kKind, execution).value();
  return stored ? StatusIn(FlowIn(*stored)) : std::nullopt;
}

std::string PlanWorld::FirstExecution() const {
  const auto& executions = Executions();
  return executions.empty() ? "" : executions.front();
}

const std::vector<std::string>& PlanWorld::Executions() const {
  static const std::vector<std::string> kNone;
  const auto stored = store_->Truth().Get(plan::kRunKind, kMigration).value();
  return stored ? executions_[stored->body] : kNone;
}

bool PlanWorld::Completed() {
  const auto& executions = Executions();
  return !executions.empty() && StatusOf(executions.back()) == FlowStatus::kSucceeded;
}

void PlanWorld::CheckEnd() {
  if (!Completed()) return Violate("V", "the migration was never completed");
  const std::vector<std::string> executions = Executions();
  const auto stored = store_->Truth().Get(states::kKind, executions.back()).value();
  const Json& output = MemberIn(FlowIn(*stored), "output");
  for (const auto& [state, task] : tasks_) {
    const Json& results = output[task.extracts ? "appflow" : "glue"];
    const Json result = results.value(task.name, Json::object());
    if (result.value("rows", -1) != task.rows)
      Violate("L", state + " gave " + result.dump() + ", not " + std::to_string(task.rows));
    if (!reconciled_.contains(reconcile_states_[task.rank]))
      Violate("L", "the rank of " + state + " was not reconciled after it had succeeded");
  }
  for (const std::string& execution : executions) CheckNotifications(execution);
  if (files_) CheckFile();
}

// Every failure was delivered to its recipients, or refused by them, unless it was cancelled, or
// caused by another failure.
void PlanWorld::CheckNotifications(const std::string& execution) {
  if (StatusOf(execution) == FlowStatus::kAborted ||
      plan_.on_failure == plan::FailurePolicy::kFailFast)
    return;
  for (const auto& [state, task] : tasks_) {
    if (!failed_[execution].contains(task.key)) continue;
    const std::string key =
        execution + "/" + std::to_string(plan_.ranks[task.rank].number) + "/" + task.name;
    if (!delivered_.contains(key) && refused_[key] <= kNotifyRetries)
      Violate("R", "no notification was sent that " + state + " failed in " + execution);
  }
}

}  // namespace muster::sim
