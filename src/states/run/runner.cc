#include "states/run/runner.h"

#include <deque>
#include <map>

namespace muster::states {
namespace {

class Context final : public TaskContext {
 public:
  Context(Env& env, std::stop_token stop) : env_(env), stop_(std::move(stop)) {}
  Env& env() override { return env_; }
  bool KeepAlive() override { return !stop_.stop_requested(); }
  std::stop_token stop() const override { return stop_; }

 private:
  Env& env_;
  std::stop_token stop_;
};

class Runner {
 public:
  Runner(std::shared_ptr<const Definition> definition, ExecutionInfo info, Env& env,
         JsonataEngine* jsonata, TaskExecutor& executor, std::stop_token stop)
      : definition_(std::move(definition)),
        env_(env),
        jsonata_(jsonata),
        executor_(executor),
        stop_(std::move(stop)),
        info_(std::move(info)) {}

  RunResult Run() {
    Scene scene(definition_, info_, env_, jsonata_);
    Branch root{.scene = &scene, .flow = scene.interpreter.Begin()};
    if (definition_->timeout_s)
      deadline_ = env_.WallNow() + std::chrono::seconds(*definition_->timeout_s);
    ready_.push_back(&root);
    while (!root.flow.ended() && Next(root)) {
    }
    scene.interpreter.End(root.flow);
    return {root.flow.status, root.flow.output, root.flow.failure, scene.log.events()};
  }

 private:
  // A history with its interpreter: the execution's, or that of a child of a distributed Map.
  struct Scene {
    Scene(std::shared_ptr<const Definition> definition, ExecutionInfo info, Env& env,
          JsonataEngine* jsonata)
        : interpreter(std::move(definition), std::move(info), env, jsonata, log) {}
    MemoryEventLog log;
    Interpreter interpreter;
  };

  struct Branch {
    Scene* scene;
    Flow flow;
    Branch* parent = nullptr;
    size_t index = 0;
    std::unique_ptr<Scene> own_scene = {};
    std::map<size_t, std::unique_ptr<Branch>> running = {};
    std::map<size_t, ChildResult> results = {};
  };

  // Drives the flows that can continue, or waits for the first timer. False: the execution has
  // ended.
  bool Next(Branch& root) {
    if (stop_.stop_requested())
      return EndAll(root, FlowStatus::kAborted, {.error = "", .cause = "stop requested"});
    if (deadline_ && env_.WallNow() >= *deadline_) return TimeOut(root);
    if (!ready_.empty()) {
      Branch& branch = *ready_.front();
      ready_.pop_front();
      Drive(branch);
      return true;
    }
    // No flow can continue: without this, a bug in the driver would wait forever.
    if (timers_.empty())
      return EndAll(root, FlowStatus::kFailed,
                    {.error = kRuntime, .cause = "nothing is left to do"});
    const auto first = timers_.begin();
    const WallTime now = env_.WallNow();
    WallTime until = first->first;
    if (deadline_ && *deadline_ < until) until = *deadline_;
    if (until > now) env_.Sleep(until - now, stop_);
    if (deadline_ && env_.WallNow() >= *deadline_) return TimeOut(root);
    Branch& branch = *first->second;
    timers_.erase(first);
    if (branch.flow.wants == Wants::kTask) {
      MakeCall(branch, true);
    } else {
      branch.scene->interpreter.TimerFired(branch.flow);
    }
    ready_.push_back(&branch);
    return true;
  }

  bool TimeOut(Branch& root) {
    return EndAll(root, FlowStatus::kTimedOut, {.error = kTimeout, .cause = ""});
  }

  bool EndAll(Branch& root, FlowStatus status, Failure failure) {
    AbortChildren(root);
    root.scene->interpreter.Abort(root.flow);
    root.flow.status = status;
    root.flow.failure = std::move(failure);
    return false;
  }

  void Drive(Branch& branch) {
    Interpreter& interpreter = branch.scene->interpreter;
    interpreter.Run(branch.flow);
    switch (branch.flow.wants) {
      case Wants::kTask:
        MakeCall(branch, false);
        if (!branch.flow.task || !branch.flow.task->pending) ready_.push_back(&branch);
        return;
      case Wants::kTimer:
        timers_.emplace(*branch.flow.due, &branch);
        return;
      case Wants::kChildren:
        if (branch.running.empty() && branch.flow.children->started == 0) branch.results.clear();
        return StartChildren(branch);
      case Wants::kCallback:
      case Wants::kNothing:
        break;
    }
    if (!branch.flow.ended()) {
      ready_.push_back(&branch);
    } else if (branch.parent != nullptr) {
      Ended(*branch.parent, branch.index);
    }
  }

  void MakeCall(Branch& branch, bool again) {
    Interpreter& interpreter = branch.scene->interpreter;
    Flow& flow = branch.flow;
    if (flow.task->purpose == TaskProgress::Purpose::kWriteResults)
      static_cast<void>(interpreter.FillResults(flow, ResultsOf(branch)));
    const TaskCall call = CallOf(flow, interpreter.StateOf(flow), info_, env_.WallNow());
    Context context(env_, stop_);
    if (!executor_.Runs(call.resource)) {
      return interpreter.TaskFailed(
          flow,
          {.error = kRuntime, .cause = "no executor runs the resource '" + call.resource + "'"});
    }
    const std::optional<WallTime> deadline = flow.task->deadline;
    TaskOutcome outcome =
        again ? executor_.Poll(call, flow.task->resume, context) : executor_.Start(call, context);
    const bool late = deadline && env_.WallNow() >= *deadline;
    if (auto* pending = std::get_if<TaskPending>(&outcome)) {
      if (late) {
        executor_.Cancel(call, pending->resume, context);
        return interpreter.TaskTimedOut(flow, false);
      }
      if (!flow.task->pending) interpreter.TaskSubmitted(flow, pending->resume);
      flow.task->pending = true;
      flow.task->resume = std::move(pending->resume);
      WallTime due = env_.WallNow() + pending->poll_after;
      if (deadline && *deadline < due) due = *deadline;
      timers_.emplace(due, &branch);
      return;
    }
    if (late) return interpreter.TaskTimedOut(flow, false);
    if (auto* failure = std::get_if<TaskFailure>(&outcome)) {
      return interpreter.TaskFailed(
          flow, {.error = std::move(failure->error), .cause = std::move(failure->cause)});
    }
    Json& output = std::get<TaskSuccess>(outcome).output;
    if (!flow.task->pending) interpreter.TaskSubmitted(flow, output);
    interpreter.TaskSucceeded(flow, std::move(output));
  }

  void StartChildren(Branch& parent) {
    Interpreter& interpreter = parent.scene->interpreter;
    const ChildrenProgress& children = *parent.flow.children;
    const auto limit =
        static_cast<size_t>(children.concurrency == 0 ? INT64_MAX : children.concurrency);
    while (children.started < children.total && parent.running.size() < limit) {
      const auto index = static_cast<size_t>(children.started);
      auto flow = interpreter.StartChild(parent.flow);
      if (!flow) {
        AbortChildren(parent);
        interpreter.ChildrenFailed(parent.flow, std::move(flow).error());
        ready_.push_back(&parent);
        return;
      }
      auto child = std::make_unique<Branch>(Branch{
          .scene = parent.scene, .flow = *std::move(flow), .parent = &parent, .index = index});
      if (interpreter.StateOf(parent.flow).distributed) {
        ExecutionInfo info = parent.scene->interpreter.info();
        info.name += "/" + child->flow.path;
        info.input = child->flow.input;
        info.start = env_.WallNow();
        child->own_scene = std::make_unique<Scene>(definition_, std::move(info), env_, jsonata_);
        child->scene = child->own_scene.get();
        child->scene->log.Add(
            {.type = "ExecutionStarted", .time = env_.WallNow(), .payload = child->flow.input});
      }
      ready_.push_back(child.get());
      parent.running.emplace(index, std::move(child));
    }
  }

  void Ended(Branch& parent, size_t index) {
    Interpreter& interpreter = parent.scene->interpreter;
    const std::unique_ptr<Branch> child = std::move(parent.running.extract(index).mapped());
    Keep(parent, *child);
    if (interpreter.ChildEnded(parent.flow, child->flow)) {
      AbortChildren(parent);
      interpreter.ChildrenFailed(parent.flow, child->flow.failure);
      ready_.push_back(&parent);
      return;
    }
    if (parent.flow.children->started < parent.flow.children->total) return StartChildren(parent);
    if (!parent.running.empty()) return;
    // Cannot fail: everything is in memory.
    static_cast<void>(interpreter.ChildrenSucceeded(parent.flow, ResultsOf(parent)));
    ready_.push_back(&parent);
  }

  void Keep(Branch& parent, const Branch& child) {
    const ExecutionInfo& info = child.scene->interpreter.info();
    parent.results[child.index] = {.index = static_cast<int64_t>(child.index),
                                   .name = info.name,
                                   .status = child.flow.status,
                                   .input = info.input,
                                   .output = child.flow.output,
                                   .failure = child.flow.failure,
                                   .start = info.start,
                                   .stop = env_.WallNow()};
  }

  static ChildResults ResultsOf(const Branch& parent) {
    return [&parent](int64_t from) {
      std::vector<ChildResult> results;
      for (auto next = parent.results.lower_bound(static_cast<size_t>(from));
           next != parent.results.end(); ++next)
        results.push_back(next->second);
      if (!results.empty() || !parent.flow.children) return results;
      for (; from < parent.flow.children->total; ++from) {
        results.push_back(
            {.index = from,
             .status = FlowStatus::kRunning,
             .input = MakeValue((*parent.flow.children->items)[static_cast<size_t>(from)])});
      }
      return results;
    };
  }

  void AbortChildren(Branch& parent) {
    while (!parent.running.empty()) {
      const std::unique_ptr<Branch> child =
          std::move(parent.running.extract(parent.running.begin()).mapped());
      AbortChildren(*child);
      std::erase(ready_, child.get());
      std::erase_if(timers_, [&](const auto& timer) { return timer.second == child.get(); });
      child->scene->interpreter.Abort(child->flow);
      Keep(parent, *child);
      if (parent.flow.children) parent.scene->interpreter.ChildEnded(parent.flow, child->flow);
    }
  }

  std::shared_ptr<const Definition> definition_;
  Env& env_;
  JsonataEngine* jsonata_;
  TaskExecutor& executor_;
  std::stop_token stop_;
  ExecutionInfo info_;
  std::optional<WallTime> deadline_;
  std::deque<Branch*> ready_;
  std::multimap<WallTime, Branch*> timers_;
};

}  // namespace

TaskCall CallOf(const Flow& flow, const State& state, const ExecutionInfo& info, WallTime now) {
  const TaskProgress& task = *flow.task;
  TaskCall call{.resource = task.resource,
                .input = *task.input,
                .credentials = task.credentials ? *task.credentials : Json(),
                .token = task.token,
                .execution = info.name,
                .state = flow.state};
  if (task.deadline) call.timeout = std::max(std::chrono::milliseconds(0), *task.deadline - now);
  if (task.heartbeat_s) call.heartbeat = std::chrono::seconds(*task.heartbeat_s);
  if (task.purpose == TaskProgress::Purpose::kTask && state.parameters)
    call.references = state.parameters->SecretReferences();
  if (task.purpose == TaskProgress::Purpose::kReadItems && state.item_reader->parameters)
    call.references = state.item_reader->parameters->SecretReferences();
  return call;
}

RunResult RunInMemory(std::shared_ptr<const Definition> definition, ExecutionInfo info, Env& env,
                      JsonataEngine* jsonata, TaskExecutor& executor, std::stop_token stop) {
  info.start = env.WallNow();
  return Runner(std::move(definition), std::move(info), env, jsonata, executor, std::move(stop))
      .Run();
}

}  // namespace muster::states
