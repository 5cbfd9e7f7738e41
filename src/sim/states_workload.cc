#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "muster/states.h"
#include "sim/states_machine.h"
#include "sim/states_world.h"
#include "sim/stored_flow.h"
#include "sim/workload.h"
#include "states/states.h"

namespace muster::sim {
namespace {

using std::chrono::seconds;

// What the stopper was told. Unknown: that it had ended, perhaps by an earlier try.
enum class StopAnswer { kNone, kStopped, kEnded, kUnknown };

class StatesWorkloadImpl final : public Workload {
 public:
  void Setup(Simulation& sim) override {
    sim_ = &sim;
    Random& random = sim.random();
    world_ = std::make_unique<StatesWorld>(sim);
    world_->terms() = Terms(sim.terms());
    const int64_t executions = random.Between(1, 2);
    for (int64_t i = 0; i < executions; ++i) {
      Json items = Json::array();
      for (int64_t item = random.Between(0, 3); item > 0; --item)
        items.push_back(random.Between(0, 99));
      world_->inputs()["run" + std::to_string(i)] = {
          {"items", items}, {"doomed", random.OneIn(4)}, {"number", i}};
    }
    if (random.OneIn(3)) stopped_ = "run0";
    world_->RefuseNotifications(random.Between(0, 4));
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
    for (const auto& [name, input] : world_->inputs()) {
      const auto stored = world_->store().Truth().Get(states::kKind, name).value();
      if (!stored) {
        Violate("V", name + " was never started");
        continue;
      }
      const Json& flow = world_->FlowIn(*stored);
      const auto status = StatusIn(flow);
      if (status == states::ExecutionStatus::kRunning) Violate("V", name + " was left running");
      const bool aborted = status == states::ExecutionStatus::kAborted;
      if (name == stopped_ && stop_answer_ == StopAnswer::kStopped && !aborted) {
        Violate("R", name + " was reported stopped, but is " + TextIn(flow, "status"));
      }
      if (aborted && (name != stopped_ || stop_answer_ == StopAnswer::kEnded)) {
        Violate("R", name + " was aborted though no stop was acknowledged");
      }
      if (!aborted) world_->CheckResult(name, flow);
    }
  }

 private:
  // The product's, those of all simulations before there were others, or any. But faults do not
  // count: what becomes of an execution is known beforehand.
  static states::StatesOptions Terms(Random& random) {
    states::StatesOptions terms;
    terms.max_attempts = 1'000;
    if (random.OneIn(4)) return terms;
    terms.lease = seconds(30);
    terms.max_lease = seconds(120);
    terms.idle_wait = seconds(5);
    terms.batch = 4;
    if (random.OneIn(2)) return terms;
    terms.lease = seconds(random.Between(15, 90));
    terms.max_lease = terms.lease * random.Between(1, 8);
    terms.idle_wait = milliseconds(random.Between(500, 15'000));
    terms.batch = static_cast<int>(random.Between(1, 10));
    return terms;
  }

  void Work(const std::string& name, Env& env, std::stop_token stop) {
    const auto service = world_->NewService(name);
    states::StatesOptions options = world_->terms();
    options.owner = name;
    states::States states(world_->store(), {service.get()}, options, env);
    for (const auto& [run, input] : world_->inputs()) {
      while (!stop.stop_requested()) {
        const Status started =
            states.Start({.name = run, .definition = kStatesDefinition, .input = input.dump()});
        if (started) break;
        if (!IsTransient(started.error().code))
          return Violate("V", name + ": " + started.error().message);
        env.Sleep(seconds(1), stop);
      }
      // Perhaps before it was started: then a start with another input would be the first.
      if (stop.stop_requested()) return;
      if (++starts_[run] > 1) sim_->Sometimes("45 several start the same execution");
      const Status other =
          states.Start({.name = run, .definition = kStatesDefinition, .input = "{\"other\":1}"});
      if (other) Violate("R", run + " was started twice with different inputs");
      if (!other && other.error().code == Code::kConflict)
        sim_->Sometimes("45 a different start of the same name is refused");
    }
    for (const auto& [run, input] : world_->inputs()) {
      const Status worked = states.Work(run, stop);
      if (!worked) Violate("V", name + " gave up: " + worked.error().message);
    }
  }

  // Answers callbacks, sooner or later.
  void Answer(Env& env, std::stop_token stop) {
    states::States states(world_->store(), {}, {}, env);
    while (!stop.stop_requested() && !world_->AllEnded()) {
      for (const std::string& token : std::set<std::string>(world_->asked())) {
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
    states::States states(world_->store(), {}, {}, env);
    while (!stop.stop_requested() && stop_answer_ == StopAnswer::kNone) {
      ++stop_tries_;
      const Status answer = states.Stop(stopped_, "Stopped", "by request");
      if (answer) {
        stop_answer_ = StopAnswer::kStopped;
        sim_->Sometimes("46 a running execution is stopped");
      } else if (answer.error().code == Code::kConflict) {
        // It may have been this one that ended it, in a try whose response was lost or that a crash
        // cut short.
        stop_answer_ = stop_tries_ == 1 ? StopAnswer::kEnded : StopAnswer::kUnknown;
        sim_->Sometimes("46 a stop comes too late");
      }
      env.Sleep(seconds(1), stop);
    }
  }

  void Violate(const std::string& invariant, std::string message) {
    world_->Violate(invariant, std::move(message));
  }

  Simulation* sim_ = nullptr;
  std::unique_ptr<StatesWorld> world_;
  std::map<std::string, int> starts_;
  std::set<std::string> answered_;  // tokens whose answer was accepted
  std::string stopped_;             // the execution to stop
  StopAnswer stop_answer_ = StopAnswer::kNone;
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
