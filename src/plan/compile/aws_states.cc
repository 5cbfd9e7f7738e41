#include <cmath>

#include "plan/compile/machine_data.h"
#include "plan/compile/profile_states.h"
#include "plan/explain/estimate.h"
#include "plan/model/name_template.h"

namespace muster::plan {
namespace {

constexpr int kRecordsAsked = 100;  // AppFlow's page limit, newest first

// AppFlow extracts, Glue transforms, SNS notifies, DynamoDB keeps the status.
class AwsStates final : public ProfileStates {
 public:
  AwsStates(const Plan& plan, RunIdentity run) : plan_(plan), run_(std::move(run)), names_(plan) {}

  bool HasChildMachines() const override { return true; }

  std::string PhaseName(const Rank& rank, Phase phase) const override {
    return (phase == Phase::kExtract ? "AppFlowExtraction-Rank" : "GlueTransformation-Rank") +
           std::to_string(rank.number);
  }

  std::string NotifyName(const Rank& rank, Phase phase, const std::string& task) const override {
    return Named(phase == Phase::kExtract ? "NotifyAppFlowFailure" : "NotifyGlueFailure", rank,
                 task);
  }

  std::string LastState(const Rank& rank, Phase phase, const std::string& task) const override {
    return Named(phase == Phase::kExtract ? "FlowDone" : "StartGlue", rank, task);
  }

  std::string FirstState(const Rank& rank, Phase phase, const std::string& task) const override {
    return Named(phase == Phase::kExtract ? "StartFlow" : "StartGlue", rank, task);
  }

  // startFlow returns when the flow has started, so the machine polls until it ends. A flow that
  // ended in an error is retried by the same rule as one that failed to start.
  void AddExtract(Chain& chain, const Rank& rank, const ExtractTask& task,
                  const std::string& failed) const override {
    const std::string start = Named("StartFlow", rank, task.name);
    const std::string wait = Named("WaitFlow", rank, task.name);
    const std::string again = Named("RetryFlow", rank, task.name);
    const std::string done = LastState(rank, Phase::kExtract, task.name);
    const Json retry = RetryOf(task.rules.retry, {"AppFlowException"});
    const Json failure = CatchAll(ResultPathOf(task.name), failed);
    Json flow;
    names_.Put(flow, "FlowName", plan_.names.flow, Own(rank, "object", task.name));
    chain.Add(start, {{"Type", "Task"},
                      {"Resource", "arn:aws:states:::aws-sdk:appflow:startFlow"},
                      {"Parameters", flow},
                      {"ResultSelector", {{"ExecutionId.$", "$.ExecutionId"}}},
                      {"ResultPath", "$.flow"},
                      {"Retry", retry},
                      {"Catch", failure}});
    const CountRange polls = PollsOf(task);
    chain.Add(wait, {{"Type", "Wait"}, {"Seconds", plan_.poll_s}}, polls);
    flow["MaxResults"] = kRecordsAsked;
    chain.Add(Named("DescribeFlow", rank, task.name),
              {{"Type", "Task"},
               {"Resource", "arn:aws:states:::aws-sdk:appflow:describeFlowExecutionRecords"},
               {"Parameters", flow},
               {"ResultSelector", {{"FlowExecutions.$", "$.FlowExecutions"}}},
               {"ResultPath", "$.records"},
               {"Retry", RetryService()},
               {"Catch", failure}},
              polls);
    chain.Add(Named("FlowEnded", rank, task.name), FlowEnded(task, wait, again, done, failed),
              polls);
    chain.Detach();
    chain.AddOther(again, RetryFlow(task.rules.retry, start));
    chain.AddSide(done, {{"Type", "Pass"}});
    chain.Count({{1, 2}, {1, 2}});
  }

  void AddTransform(Chain& chain, const Rank& rank, const TransformTask& task,
                    const std::string& failed) const override {
    Json arguments;
    names_.Put(arguments, "--TENANT_ID", "{tenantId}");
    arguments["--ENTITY_NAME"] = task.name;
    arguments["--TARGET_SCHEMA"] = task.schema;
    arguments["--TARGET_TABLE"] = task.table;
    Json parameters;
    names_.Put(parameters, "JobName", plan_.names.job, Own(rank, "script", task.name));
    parameters["Arguments"] = arguments;
    // A worker of this type is one DPU; Glue rejects jobs with fewer than two.
    parameters["WorkerType"] = "G.1X";
    parameters["NumberOfWorkers"] = std::max<int64_t>(task.dpu, 2);
    chain.Add(
        LastState(rank, Phase::kTransform, task.name),
        {{"Type", "Task"},
         {"Resource", "arn:aws:states:::glue:startJobRun.sync"},
         {"Parameters", parameters},
         {"TimeoutSeconds", task.rules.timeout_s},
         {"ResultSelector",
          {{"JobName.$", "$.JobName"}, {"JobRunId.$", "$.Id"}, {"JobRunState.$", "$.JobRunState"}}},
         {"ResultPath", ResultPathOf(task.name)},
         {"Retry", RetryOf(task.rules.retry, {"Glue.ConcurrentRunsExceededException"})},
         {"Catch", CatchAll(ResultPathOf(task.name), failed)}});
  }

  // Only the job itself could report how many rows it has loaded.
  std::optional<Json> Reconcile(const Rank& /*rank*/) const override { return std::nullopt; }
  std::string ReconcileName(const Rank& /*rank*/) const override { return {}; }
  Json NotifyUnreconciled(const Rank& /*rank*/) const override { return {}; }

  Json Notify(const Rank& rank, Phase phase, const std::string& task) const override {
    const std::string what =
        phase == Phase::kExtract ? "AppFlow extraction" : "Glue transformation";
    Json dedupe{{"DataType", "String"}};
    names_.Put(dedupe, "StringValue", "{migrationId}/" + std::to_string(rank.number) + "/" + task);
    Json parameters;
    names_.Put(parameters, "TopicArn", plan_.names.topic);
    parameters["Message"] = FailureMessage(rank, phase, task, what);
    parameters["MessageAttributes"] = {{"dedupe", dedupe}};
    return {{"Type", "Task"},           {"Resource", "arn:aws:states:::sns:publish"},
            {"Parameters", parameters}, {"ResultSelector", {{"task", task}}},
            {"ResultPath", "$.failed"}, {"Retry", RetryService()}};
  }

  Json Initialize() const override {
    if (run_.attempt > 1) return InitializeAgain();
    Json item = Key();
    item["status"] = {{"S", NameOf(RunStatus::kInProgress)}};
    item["started_at"] = {{"S.$", "$$.State.EnteredTime"}};
    Json parameters;
    names_.Put(parameters, "TableName", plan_.names.status_table);
    parameters["Item"] = item;
    return {{"Type", "Task"},
            {"Resource", "arn:aws:states:::aws-sdk:dynamodb:putItem"},
            {"Parameters", parameters}};
  }

  // Keeps the original start time.
  Json InitializeAgain() const {
    Json parameters;
    names_.Put(parameters, "TableName", plan_.names.status_table);
    parameters["Key"] = Key();
    parameters["UpdateExpression"] =
        "SET #status = :status, #started_at = if_not_exists(#started_at, :now) REMOVE "
        "#completed_at";
    parameters["ExpressionAttributeNames"] = {
        {"#status", "status"}, {"#started_at", "started_at"}, {"#completed_at", "completed_at"}};
    parameters["ExpressionAttributeValues"] = {{":status", {{"S", NameOf(RunStatus::kInProgress)}}},
                                               {":now", {{"S.$", "$$.State.EnteredTime"}}}};
    return {{"Type", "Task"},
            {"Resource", "arn:aws:states:::aws-sdk:dynamodb:updateItem"},
            {"Parameters", parameters}};
  }

  Json Update(RunStatus status) const override {
    const bool completed = status == RunStatus::kCompleted;
    Json attributes{{"#status", "status"}};
    Json values{{":status", {{"S", NameOf(status)}}}};
    if (completed) {
      attributes["#completed_at"] = "completed_at";
      values[":completed_at"] = {{"S.$", "$$.State.EnteredTime"}};
    }
    Json parameters;
    names_.Put(parameters, "TableName", plan_.names.status_table);
    parameters["Key"] = Key();
    parameters["UpdateExpression"] = completed
                                         ? "SET #status = :status, #completed_at = :completed_at"
                                         : "SET #status = :status";
    parameters["ExpressionAttributeNames"] = attributes;
    parameters["ExpressionAttributeValues"] = values;
    return {{"Type", "Task"},
            {"Resource", "arn:aws:states:::aws-sdk:dynamodb:updateItem"},
            {"Parameters", parameters}};
  }

  // Glue jobs are pending calls: ending the execution stops them.
  std::optional<Json> StopExtract() const override {
    return Json{{"Type", "Task"},
                {"Resource", "arn:aws:states:::aws-sdk:appflow:cancelFlowExecutions"},
                {"Parameters",
                 {{"FlowName.$", "$.asked.FlowName"},
                  {"ExecutionIds.$", "States.Array($.answered.ExecutionId)"}}}};
  }

  Json StartRank(const Rank& rank, const Json& input) const override {
    Json own = input;
    // Makes AWS's console link the two executions.
    own["AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID.$"] = "$$.Execution.Id";
    Json parameters;
    names_.Put(parameters, "StateMachineArn",
               "arn:aws:states:{region}:{account}:stateMachine:" + plan_.names.machine + "-rank-" +
                   std::to_string(rank.number));
    parameters["Input"] = own;
    return {{"Type", "Task"},
            {"Resource", "arn:aws:states:::states:startExecution.sync:2"},
            {"Parameters", parameters}};
  }

 private:
  static std::string Named(const std::string& what, const Rank& rank, const std::string& task) {
    return StateName(what + "-" + std::to_string(rank.number) + "-" + task);
  }

  static std::map<std::string, std::string> Own(const Rank& rank, const std::string& kind,
                                                const std::string& task) {
    return {{"rank", std::to_string(rank.number)}, {kind, task}};
  }

  Json Key() const {
    Json tenant;
    names_.Put(tenant, "S", "{tenantId}");
    Json migration;
    names_.Put(migration, "S", "{migrationId}");
    return {{"tenant_id", tenant}, {"migration_id", migration}};
  }

  int64_t Polls(double time_s) const {
    const auto poll = static_cast<double>(plan_.poll_s);
    return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(time_s / poll)));
  }

  CountRange PollsOf(const ExtractTask& task) const {
    const SecondsRange time = EstimateExtract(plan_, task);
    return {{Polls(time.min), 0}, {Polls(time.max), 0}};
  }

  // Decides by our own execution's record: AppFlow cannot be asked about a single one.
  Json FlowEnded(const ExtractTask& task, const std::string& wait, const std::string& again,
                 const std::string& done, const std::string& failed) const {
    const std::string run =
        "$states.input.records.FlowExecutions[ExecutionId = $states.input.flow.ExecutionId][0]";
    const std::string ended_badly = run + ".ExecutionStatus in ['Error', 'Canceled']";
    const auto with_result = [&](const std::string& result) {
      return "{% $merge([$states.input, {'polls': 0, 'attempt': 0, 'records': {}, 'results': "
             "$merge([$states.input.results, {'" +
             task.name + "': " + result + "}])}]) %}";
    };
    const std::string timeout = std::to_string(task.rules.timeout_s);
    Json choices = Json::array();
    choices.push_back(
        {{"Condition", "{% " + run + ".ExecutionStatus = 'Successful' %}"},
         {"Output", with_result("{'ExecutionId': $states.input.flow.ExecutionId, "
                                "'ExecutionStatus': 'Successful', 'RecordsProcessed': " +
                                run + ".ExecutionResult.RecordsProcessed}")},
         {"Next", done}});
    choices.push_back({{"Condition", "{% " + ended_badly + " and $states.input.attempt < " +
                                         std::to_string(task.rules.retry.attempts) + " %}"},
                       {"Next", again}});
    choices.push_back(
        {{"Condition", "{% " + ended_badly + " %}"},
         {"Output", with_result("{'Error': 'AppFlowException', 'Cause': 'the flow ended as ' & " +
                                run + ".ExecutionStatus & ': ' & " + run +
                                ".ExecutionResult.ErrorInfo.ExecutionMessage}")},
         {"Next", failed}});
    choices.push_back(
        {{"Condition", "{% $states.input.polls + 1 >= " +
                           std::to_string(Polls(static_cast<double>(task.rules.timeout_s))) +
                           " %}"},
         {"Output",
          with_result("{'Error': 'States.Timeout', 'Cause': 'the flow did not end within " +
                      timeout + " seconds'}")},
         {"Next", failed}});
    return {{"Type", "Choice"},
            {"QueryLanguage", "JSONata"},
            {"Choices", choices},
            {"Default", wait},
            {"Output",
             "{% $merge([$states.input, {'polls': $states.input.polls + 1, 'records': {}}]) %}"}};
  }

  static Json RetryFlow(const RetryRule& rule, const std::string& start) {
    return {{"Type", "Wait"},
            {"QueryLanguage", "JSONata"},
            {"Seconds", "{% $floor(" + std::to_string(rule.interval_s) + " * $power(" +
                            ToJsonText(rule.backoff) + ", $states.input.attempt)) %}"},
            {"Output",
             "{% $merge([$states.input, {'polls': 0, 'attempt': $states.input.attempt + "
             "1, 'records': {}}]) %}"},
            {"Next", start}};
  }

  const Plan& plan_;
  const RunIdentity run_;
  const Names names_;
};

}  // namespace

std::unique_ptr<ProfileStates> NewAwsStates(const Plan& plan, const RunIdentity& run) {
  return std::make_unique<AwsStates>(plan, run);
}

}  // namespace muster::plan
