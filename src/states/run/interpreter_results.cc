#include "states/run/interpreter.h"
#include "states/run/interpreter_scope.h"
#include "states/run/results.h"

namespace muster::states {
namespace {

constexpr char kFirstList[] = "SUCCEEDED";

}  // namespace

std::string Interpreter::MachineOfChildren(const Flow& flow) const {
  const State& state = StateOf(flow);
  return info_.machine_name + "/" + (state.label.empty() ? state.name : state.label);
}

std::string Interpreter::MapRun(const Flow& flow) const {
  return "arn:aws:states:us-east-1:111111111111:mapRun:" + MachineOfChildren(flow) + ":" +
         info_.name;
}

Status Interpreter::ChildrenSucceeded(Flow& parent, const ChildResults& children) {
  const std::optional<ResultWriter>& writer = StateOf(parent).result_writer;
  if (writer && !writer->resource.empty()) {
    WriteResults(parent, {});
    return {};
  }
  Json outputs = Json::array();
  size_t bytes = 0;
  // Stops at the payload limit: further outputs only make it larger.
  for (int64_t from = 0; bytes <= kMaxPayloadBytes;) {
    MUSTER_ASSIGN(const std::vector<ChildResult> page, children(from));
    if (page.empty()) break;
    from = page.back().index + 1;
    Json part = Json::array();
    if (writer) part = InlineResults(page, *writer, MachineOfChildren(parent));
    for (const ChildResult& child : page) {
      if (!writer && child.status == FlowStatus::kSucceeded) part.push_back(*child.output);
    }
    for (Json& output : part) {
      bytes += JsonBytes(output, kMaxPayloadBytes);
      outputs.push_back(std::move(output));
    }
  }
  MapSucceeded(parent, MakeValue(std::move(outputs)));
  return {};
}

void Interpreter::MapSucceeded(Flow& flow, const Value& outputs) {
  const State& state = StateOf(flow);
  flow.wants = Wants::kNothing;
  if (state.distributed) Add(flow, "MapRunSucceeded");
  if (auto small = CheckSize(flow, *outputs); !small)
    return StateFailed(flow, std::move(small).error());
  Add(flow, std::string(kStateTypes.NameOf(state.type)) + "StateSucceeded");
  Complete(flow, outputs, outputs);
}

void Interpreter::ChildrenFailed(Flow& parent, Failure failure) {
  const State& state = StateOf(parent);
  if (state.distributed && failure.error != kRuntime) {
    failure = {.error = "States.ExceedToleratedFailureThreshold",
               .cause = "The specified tolerated failure threshold was exceeded",
               .internal = false};
    if (state.result_writer && !state.result_writer->resource.empty())
      return WriteResults(parent, std::move(failure));
    Add(parent, "MapRunFailed", {}, {}, failure);
  }
  FailChildren(parent, std::move(failure));
}

// Keeps the children, so that a redrive does not repeat those that succeeded.
void Interpreter::FailChildren(Flow& flow, Failure failure) {
  std::optional<ChildrenProgress> children = std::move(flow.children);
  flow.children.reset();
  flow.results.reset();
  StateFailed(flow, std::move(failure));
  if (flow.status == FlowStatus::kFailed) flow.failed_children = std::move(children);
}

// One call for each file, the manifest last. The content is collected when the call is made, from
// children that no longer change.
void Interpreter::WriteResults(Flow& flow, std::optional<Failure> failure) {
  const ResultWriter& writer = *StateOf(flow).result_writer;
  auto input = EffectiveInput(flow);
  if (!input) return FailChildren(flow, std::move(input).error());
  const ScopeHolder scope(*this, flow, input->get());
  ResultsProgress results{.parameters = Json::object(), .list = kFirstList};
  if (writer.parameters) {
    auto parameters = writer.parameters->Evaluate(*scope);
    if (!parameters) return FailChildren(flow, std::move(parameters).error());
    results.parameters = **parameters;
  }
  const bool has_bucket = results.parameters.is_object() && results.parameters.contains("Bucket") &&
                          results.parameters["Bucket"].is_string();
  if (!has_bucket)
    return FailChildren(flow, {.error = kRuntime, .cause = "The ResultWriter names no Bucket."});
  if (results.parameters.contains("Prefix") && results.parameters["Prefix"].is_string()) {
    results.folder = results.parameters["Prefix"].get<std::string>();
    if (!results.folder.empty() && !results.folder.ends_with('/')) results.folder += '/';
    results.parameters.erase("Prefix");
  }
  results.folder += info_.name + "-" + std::to_string(flow.entry) + "/";
  results.only_succeeded = !failure && flow.children->failed == 0;
  results.failure = std::move(failure);
  flow.results = std::move(results);
  flow.task =
      TaskProgress{.purpose = TaskProgress::Purpose::kWriteResults,
                   .resource = writer.resource,
                   .input = MakeValue(Json::object()),
                   .token = info_.name + ":" + flow.path + ":" + std::to_string(flow.entry) + ":" +
                            std::to_string(flow.retry_count) + ":results"};
  flow.wants = Wants::kTask;
}

Status Interpreter::FillResults(Flow& parent, const ChildResults& children) {
  const ResultWriter& writer = *StateOf(parent).result_writer;
  MUSTER_ASSIGN(ResultsFile file,
                NextResultsFile(*parent.results, writer, MachineOfChildren(parent), MapRun(parent),
                                children));
  Json call = parent.results->parameters;
  call["Key"] = file.key;
  call["Body"] = file.body;
  parent.task->input = MakeValue(std::move(call));
  parent.results->file = std::move(file);
  return {};
}

// A file is written: continues with the next one, or ends the Map.
void Interpreter::ResultsWritten(Flow& flow) {
  ResultsProgress& results = *flow.results;
  const ResultsFile file = *std::move(results.file);
  results.file.reset();
  if (!file.list.empty()) {
    ResultsFileWritten(results, file);
    flow.task->input = MakeValue(Json::object());
    flow.task->pending = false;
    flow.wants = Wants::kTask;
    return;
  }
  flow.task.reset();
  if (results.failure) {
    Failure failure = *std::move(results.failure);
    Add(flow, "MapRunFailed", {}, {}, failure);
    return FailChildren(flow, std::move(failure));
  }
  Json output = {
      {"MapRunArn", MapRun(flow)},
      {"ResultWriterDetails", {{"Bucket", results.parameters["Bucket"]}, {"Key", file.key}}}};
  flow.results.reset();
  MapSucceeded(flow, MakeValue(std::move(output)));
}

}  // namespace muster::states
