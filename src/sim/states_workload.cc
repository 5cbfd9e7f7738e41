#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/json_fields.h"
#include "core/virtual_env.h"
#include "muster/states.h"
#include "sim/faulty_store.h"
#include "sim/faulty_wire.h"
#include "sim/parsed.h"
#include "sim/workload.h"
#include "states/states.h"

namespace muster::sim {
namespace {

using std::chrono::seconds;

constexpr milliseconds kLease = seconds(30);
constexpr int kNotifyRetries = 2;

// Everything that keeps state across crashes: branches, iterations, backoff, a caught failure, a
// timer, a callback, and a notification that may fail without harm.
constexpr char kDefinition[] = R"({
  "StartAt": "Prepare",
  "States": {
    "Prepare": {"Type": "Pass", "Assign": {"factor": 2}, "Next": "Both"},
    "Both": {
      "Type": "Parallel",
      "Branches": [
        {"StartAt": "Flaky", "States": {
          "Flaky": {"Type": "Task", "Resource": "sim:call", "End": true,
            "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 5, "MaxAttempts": 4}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Recovered"}]},
          "Recovered": {"Type": "Pass", "Result": "recovered", "End": true}}},
        {"StartAt": "Rest", "States": {
          "Rest": {"Type": "Wait", "Seconds": 20, "Next": "Slow"},
          "Slow": {"Type": "Task", "Resource": "sim:slow", "End": true}}}
      ],
      "ResultPath": "$.both",
      "Next": "Each"},
    "Each": {
      "Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 2, "ResultPath": "$.each",
      "ItemSelector": {"item.$": "$$.Map.Item.Value", "factor.$": "$factor"},
      "ItemProcessor": {"StartAt": "One", "States": {
        "One": {"Type": "Task", "Resource": "sim:call", "End": true,
          "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 2, "MaxAttempts": 6}]}}},
      "Next": "Ask"},
    "Ask": {
      "Type": "Task", "Resource": "sim:ask.waitForTaskToken", "ResultPath": "$.answer",
      "Parameters": {"token.$": "$$.Task.Token"}, "Next": "Notify"},
    "Notify": {
      "Type": "Task", "Resource": "sim:notify", "ResultPath": null,
      "Retry": [{"ErrorEquals": ["Down"], "IntervalSeconds": 3, "MaxAttempts": 2}],
      "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": null, "Next": "Which"}],
      "Next": "Which"},
    "Which": {
      "Type": "Choice", "Default": "Done",
      "Choices": [{"Variable": "$.doomed", "BooleanEquals": true, "Next": "Doomed"}]},
    "Doomed": {"Type": "Fail", "Error": "Doomed", "Cause": "as the input said"},
    "Done": {"Type": "Succeed"}
  }
})";

// As in the definition.
struct RetryTerms {
  seconds interval;
  int64_t most;
};
const std::map<std::string, RetryTerms> kRetries = {
    {"Flaky", {seconds(5), 4}}, {"One", {seconds(2), 6}}, {"Notify", {seconds(3), kNotifyRetries}}};
constexpr seconds kRest{20};
constexpr int kConcurrency = 2;

int64_t RetryOf(const std::string& token) { return std::stoll(token.substr(token.rfind(':') + 1)); }

// The same call always has the same result: it depends on the state, the input and the number of
// retries.
states::TaskOutcome AnswerOf(const states::TaskCall& call) {
  const int64_t retry = RetryOf(call.token);
  const std::string input = call.input.dump();
  uint64_t hash = 1469598103934665603u;
  for (const char c : call.state + input)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  const auto failures = static_cast<int64_t>(hash % 3);
  if (call.resource == "sim:call" && retry < failures)
    return states::TaskFailure{"Busy", "try again"};
  if (call.state == "Flaky" && hash % 5 == 0) return states::TaskFailure{"Broken", "for good"};
  return states::TaskSuccess{{{"state", call.state}, {"retry", retry}}};
}

class StatesWorkloadImpl final : public Workload {
 public:
  void Setup(Simulation& sim) override {
    sim_ = &sim;
    Random& random = sim.random();
    store_ = std::make_unique<FaultyStore>(
        sim, StoreObserver{.sends = [this](const store::Change& change) { Sends(change); },
                           .changed = [this](const store::Change& change,
                                             const std::optional<store::Record>& before,
                                             const std::optional<store::Record>& after,
                                             bool) { Changed(change, before, after); },
                           .went_back = [this] { LostPower(); }});
    if (random.OneIn(2)) store_->MayLosePower();
    wire_ = std::make_unique<FaultyWire>(sim);
    const int64_t executions = random.Between(1, 2);
    for (int64_t i = 0; i < executions; ++i) {
      Json items = Json::array();
      for (int64_t item = random.Between(0, 3); item > 0; --item)
        items.push_back(random.Between(0, 99));
      inputs_["run" + std::to_string(i)] = {
          {"items", items}, {"doomed", random.OneIn(4)}, {"number", i}};
    }
    if (random.OneIn(3)) stopped_ = "run0";
    target_down_ = random.Between(0, 4);
    const int64_t workers = random.Between(1, 4);
    for (int64_t i = 0; i < workers; ++i) {
      const std::string name = "worker" + std::to_string(i);
      sim.AddProcess(name, [this, name](Env& env, std::stop_token stop) { Work(name, env, stop); });
    }
    sim.AddProcess("human", [this](Env& env, std::stop_token stop) { Answer(env, stop); });
    if (!stopped_.empty()) {
      const nanoseconds after = random.UpTo(nanoseconds(seconds(120)));
      sim.AddProcess("stopper",
                     [this, after](Env& env, std::stop_token stop) { StopOne(env, stop, after); });
    }
  }

  void Check() override {
    for (const auto& [name, input] : inputs_) {
      const auto stored = store_->Truth().Get("states", name).value();
      if (!stored) {
        Violate("V", name + " was never started");
        continue;
      }
      const Json& flow = FlowIn(*stored);
      const std::string status = flow["status"];
      if (status == "RUNNING") Violate("V", name + " was left running");
      const bool aborted = status == "ABORTED";
      if (name == stopped_ && stop_answer_ == "stopped" && !aborted) {
        Violate("R", name + " was reported stopped, but is " + status);
      }
      if (aborted && (name != stopped_ || stop_answer_ == "ended")) {
        Violate("R", name + " was aborted though nobody was told so");
      }
      if (aborted) continue;
      if (!notified_.contains(name) && refused_[name] <= kNotifyRetries)
        Violate("R", name + " went on without the notification, though its target was up");
      const Json expected = Expected(input);
      if (expected["status"] != status)
        Violate("L", name + " is " + status + ", not " + expected["status"].get<std::string>());
      if (status == "SUCCEEDED" && !states::JsonEqual(flow["output"], expected["output"])) {
        Violate("L",
                name + " gave " + flow["output"].dump() + ", not " + expected["output"].dump());
      }
    }
  }

 private:
  // The service that tasks call: remote, and remembers its requests.
  class Service final : public states::TaskExecutor {
   public:
    Service(StatesWorkloadImpl& world, std::string process)
        : world_(world), process_(std::move(process)) {}

    bool Runs(std::string_view resource) const override { return resource.starts_with("sim:"); }

    states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override {
      world_.Called(call, process_);
      if (call.resource == "sim:slow") {
        // Longer than a lease: only KeepAlive holds it.
        for (int i = 0; i < 12; ++i) {
          if (!context.KeepAlive()) return states::TaskFailure{"Cancelled", ""};
          context.env().Sleep(seconds(4), {});
        }
        world_.sim_->Sometimes("a call takes longer than a lease");
      }
      for (;;) {
        // It may arrive after the caller has gone, so it must not refer to it.
        const bool asks = call.resource == "sim:ask.waitForTaskToken";
        auto reached = world_.wire_->Call<bool>(
            "call " + call.state, true,
            [world = &world_, token = call.token, asks](bool) -> Result<bool> {
              world->reached_.insert(token);
              if (asks) world->asked_.insert(token);
              return true;
            });
        if (reached) {
          states::TaskOutcome answer =
              call.resource == "sim:notify" ? world_.Notify(call) : AnswerOf(call);
          if (std::holds_alternative<states::TaskFailure>(answer)) world_.Failed(call);
          return answer;
        }
        if (!context.KeepAlive()) return states::TaskFailure{"Cancelled", ""};
        context.env().Sleep(seconds(1), {});
      }
    }
    states::TaskOutcome Poll(const states::TaskCall& call, const Json&,
                             states::TaskContext& context) override {
      return Start(call, context);
    }
    void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}

   private:
    StatesWorkloadImpl& world_;
    std::string process_;
  };

  // The notification target: down for the first few, then up for good.
  states::TaskOutcome Notify(const states::TaskCall& call) {
    const std::string execution = call.token.substr(0, call.token.find(':'));
    if (target_down_ > 0) {
      --target_down_;
      ++refused_[execution];
      sim_->Sometimes("47 the target of a notification is down");
      return states::TaskFailure{"Down", "the target does not answer"};
    }
    // The token identifies repeats.
    if (!notified_[execution].insert(call.token).second)
      sim_->Sometimes("47 a notification is sent again under the same token");
    return states::TaskSuccess{Json::object()};
  }

  void Work(const std::string& name, Env& env, std::stop_token stop) {
    Service service(*this, name);
    states::States states(*store_, env, {&service},
                          {.owner = name,
                           .lease = kLease,
                           .max_lease = seconds(120),
                           .idle_wait = seconds(5),
                           .max_attempts = 1'000,
                           .batch = 4});
    for (const auto& [run, input] : inputs_) {
      while (!stop.stop_requested()) {
        const Status started =
            states.Start({.name = run, .definition = kDefinition, .input = input.dump()});
        if (started) break;
        if (!IsTransient(started.error().code))
          return Violate("V", name + ": " + started.error().message);
        env.Sleep(seconds(1), stop);
      }
      // Perhaps before it was started: then a start with another input would be the first.
      if (stop.stop_requested()) return;
      if (++starts_[run] > 1) sim_->Sometimes("45 several start the same execution");
      const Status other =
          states.Start({.name = run, .definition = kDefinition, .input = "{\"other\":1}"});
      if (other) Violate("R", run + " was started twice with different inputs");
      if (!other && other.error().code == Code::kConflict)
        sim_->Sometimes("45 a different start of the same name is refused");
    }
    for (const auto& [run, input] : inputs_) {
      const Status worked = states.Work(stop, run);
      if (!worked) Violate("V", name + " gave up: " + worked.error().message);
    }
  }

  // Answers callbacks, sooner or later.
  void Answer(Env& env, std::stop_token stop) {
    states::States states(*store_, env, {});
    while (!stop.stop_requested() && !AllEnded()) {
      for (const std::string& token : std::set<std::string>(asked_)) {
        // Once an answer was acknowledged it is not sent again.
        if (answered_.contains(token)) continue;
        if (!states.SendTaskSuccess(token, "{\"yes\":true}")) continue;
        answered_.insert(token);
        sim_->Sometimes("a callback is answered");
      }
      env.Sleep(seconds(10), stop);
    }
  }

  void StopOne(Env& env, std::stop_token stop, nanoseconds after) {
    env.Sleep(after, stop);
    states::States states(*store_, env, {});
    while (!stop.stop_requested() && stop_answer_.empty()) {
      ++stop_tries_;
      const Status answer = states.Stop(stopped_, "Stopped", "by request");
      if (answer) {
        stop_answer_ = "stopped";
        sim_->Sometimes("46 a running execution is stopped");
      } else if (answer.error().code == Code::kConflict) {
        // It may have been this one that ended it, in a try whose response was lost or that a crash
        // cut short.
        stop_answer_ = stop_tries_ == 1 ? "ended" : "unknown";
        sim_->Sometimes("46 a stop comes too late");
      }
      env.Sleep(seconds(1), stop);
    }
  }

  bool AllEnded() {
    for (const auto& [name, input] : inputs_) {
      const auto stored = store_->Truth().Get("states", name).value();
      if (!stored || states::SaysRunning(stored->body)) return false;
    }
    return true;
  }

  const Json& FlowIn(const store::Record& record) { return flows_[record.body]; }

  static std::string TokenIn(const Json& flow) {
    return flow.contains("task") ? flow["task"]["token"].get<std::string>() : "";
  }

  // A process that writes with an epoch knows that it owns it. After a late claim, or one with a
  // lost reply, the store names an owner that does not know.
  void Sends(const store::Change& change) {
    if (change.record.kind != "states") return;
    int64_t& known = known_epochs_[{std::string(sim_->CurrentName()), change.record.key}];
    known = std::max(known, change.record.epoch);
  }

  void Changed(const store::Change& change, const std::optional<store::Record>& before,
               const std::optional<store::Record>& after) {
    if (change.record.kind != "states" || !after || (before && *before == *after)) return;
    // A claim, or a change of the due time: the flow is the same.
    if (before && before->body == after->body) return;
    const Json& new_flow = FlowIn(*after);
    const std::string token = TokenIn(new_flow);
    if (!token.empty()) started_.insert(token);
    if (!before) return Created(*after, new_flow);
    const Json& old_flow = FlowIn(*before);
    const std::string was = TokenIn(old_flow);
    if (!was.empty() && was != token) closed_.insert(was);
    if (old_flow["status"] != "RUNNING" && old_flow["status"] != new_flow["status"]) {
      Violate("P", after->key + " had ended and was changed");
    }
    CheckRest(after->key, old_flow, new_flow);
    if (old_flow.contains("backing_off") && !sim_->faults_on()) return;
    if (old_flow.contains("backing_off") && before->epoch > 1)
      sim_->Sometimes("44 a backoff survives a change of hands");
    if (old_flow.value("wants", "") == "timer" && before->epoch > 1)
      sim_->Sometimes("44 a timer survives a change of hands");
  }

  void Created(const store::Record& record, const Json& flow) {
    if (flow["state"] == "Rest") rests_since_.try_emplace(record.key, sim_->now());
    if (flow["state"] == "One") CheckConcurrency(record.key);
  }

  void CheckRest(const std::string& key, const Json& before, const Json& after) {
    const auto since = rests_since_.find(key);
    const bool over = before["state"] == "Rest" && after["state"] == "Slow";
    if (!over || since == rests_since_.end() || ClocksAreWrong()) return;
    // Clocks have millisecond resolution.
    if (sim_->now() + milliseconds(2) < since->second + kRest)
      Violate("R", key + " went on before its timer");
  }

  // No more iterations of one execution are in progress than allowed.
  void CheckConcurrency(const std::string& key) {
    const std::string iterations = key.substr(0, key.rfind('.') + 1);
    const auto records = store_->Truth().Scan("states", iterations, "", store::kMaxBatch).value();
    const auto under_way = std::ranges::count_if(
        records, [](const store::Record& record) { return states::SaysRunning(record.body); });
    if (under_way > kConcurrency)
      Violate("B", std::to_string(under_way) + " iterations are under way at " + key);
  }

  // Started calls are known, and stored results still are.
  void LostPower() {
    std::set<std::string> stored;
    const auto records = store_->Truth().Scan("states", "", "", store::kMaxBatch).value();
    for (const store::Record& record : records) {
      const std::string token = TokenIn(FlowIn(record));
      stored.insert(token);
      if (closed_.contains(token)) Violate("F", token + ": its answer was lost with the power");
    }
    for (const std::string& token : reached_) {
      if (!closed_.contains(token) && !stored.contains(token))
        Violate("H", token + ": its start was lost with the power");
    }
  }

  void Failed(const states::TaskCall& call) { failed_at_.try_emplace(call.token, sim_->now()); }

  // Delays depend on clocks, so nothing can be said if one is wrong.
  bool ClocksAreWrong() const {
    return sim_->HasFired(Fault::kClockSkew) || sim_->HasFired(Fault::kClockJump);
  }

  void CheckRetry(const states::TaskCall& call) {
    const int64_t retry = RetryOf(call.token);
    if (retry == 0) return;
    const RetryTerms& terms = kRetries.at(call.state);
    if (retry > terms.most) Violate("R", call.token + " was retried too often");
    if (ClocksAreWrong()) return;
    const auto failed = failed_at_.find(call.token.substr(0, call.token.rfind(':') + 1) +
                                        std::to_string(retry - 1));
    if (failed == failed_at_.end()) return;
    const seconds least = terms.interval * (1 << (retry - 1));
    // Clocks have millisecond resolution.
    if (sim_->now() + milliseconds(2) < failed->second + least)
      Violate("B", call.token + " was retried sooner than its backoff says");
  }

  void Called(const states::TaskCall& call, const std::string& process) {
    CheckRetry(call);
    if (!started_.contains(call.token))
      Violate("H", call.token + " was called before its start was stored");
    if (reached_.contains(call.token))
      sim_->Sometimes("44 a call whose answer is unknown is made again");
    if (!closed_.contains(call.token)) return;
    const size_t first = call.token.find(':');
    const size_t second = call.token.find(':', first + 1);
    const std::string path = call.token.substr(first + 1, second - first - 1);
    const std::string key = call.token.substr(0, first) + (path.empty() ? "" : "/" + path);
    const auto stored = store_->Truth().Get("states", key).value();
    if (stored && stored->owner == process && known_epochs_[{process, key}] == stored->epoch &&
        stored->due && *stored->due > store_->Truth().Now().value() &&
        TokenIn(FlowIn(*stored)) != call.token) {
      Violate("F", call.token + " was called again after its answer was stored");
    }
  }

  // The machine's result when nothing goes wrong.
  Json Expected(const Json& input) {
    class Oracle final : public states::TaskExecutor {
     public:
      bool Runs(std::string_view) const override { return true; }
      states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext&) override {
        if (call.resource == "sim:ask.waitForTaskToken")
          return states::TaskSuccess{{{"yes", true}}};
        return AnswerOf(call);
      }
      states::TaskOutcome Poll(const states::TaskCall& call, const Json&,
                               states::TaskContext& context) override {
        return Start(call, context);
      }
      void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}
    } oracle;
    VirtualEnv env{WallTime{}};
    const auto definition = states::ReadDefinition(kDefinition, "sim", nullptr).value();
    const auto run = states::RunInMemory(
        definition, {.name = "oracle", .input = states::MakeValue(input)}, env, nullptr, oracle);
    return {{"status", states::NameOf(run.status)}, {"output", run.output ? *run.output : Json()}};
  }

  void Violate(const std::string& invariant, std::string message) {
    sim_->Violate(invariant, std::move(message));
  }

  Simulation* sim_ = nullptr;
  Parsed<Json> flows_{[](const std::string& body) { return MemberIn(Json::parse(body), "flow"); }};
  std::unique_ptr<FaultyStore> store_;
  std::unique_ptr<FaultyWire> wire_;
  std::map<std::string, Json> inputs_;
  std::map<std::string, int> starts_;
  std::set<std::string> started_;                   // tokens whose start was stored
  std::set<std::string> closed_;                    // tokens whose answer was stored
  std::map<std::string, nanoseconds> rests_since_;  // by record
  std::map<std::string, nanoseconds> failed_at_;    // when a call was first answered so, by token
  std::set<std::string> reached_;                   // tokens that the service has seen
  std::set<std::string> asked_;                     // tokens that wait for a callback
  std::set<std::string> answered_;                  // tokens whose answer was accepted
  std::map<std::pair<std::string, std::string>, int64_t> known_epochs_;  // by process and record
  int64_t target_down_ = 0;                                // how many notifications are refused
  std::map<std::string, int> refused_;                     // by execution
  std::map<std::string, std::set<std::string>> notified_;  // tokens that arrived, by execution
  std::string stopped_;
  std::string stop_answer_;
  int stop_tries_ = 0;
};

}  // namespace

WorkloadInfo StatesWorkload() {
  return {.name = "states",
          .about = "processes drive state machines with branches, retries, timers and callbacks",
          .create = []() -> std::unique_ptr<Workload> {
            return std::make_unique<StatesWorkloadImpl>();
          },
          .sometimes = {"44 a backoff survives a change of hands",
                        "44 a timer survives a change of hands",
                        "44 a call whose answer is unknown is made again",
                        "45 several start the same execution",
                        "45 a different start of the same name is refused",
                        "46 a running execution is stopped", "46 a stop comes too late",
                        "47 the target of a notification is down",
                        "47 a notification is sent again under the same token",
                        "24 a loss of power takes back what the disk had not been waited for",
                        "a call takes longer than a lease", "a callback is answered",
                        "a machine is suspended"},
          .small_worlds = 2,
          .small_world = 600};
}

}  // namespace muster::sim
