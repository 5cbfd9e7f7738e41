#include "plan/compile/deployment.h"

#include <set>

#include "plan/model/name_template.h"

namespace muster::plan {
namespace {

Json Statement(const std::string& id, const std::vector<std::string>& actions, Json resources) {
  return {
      {"Sid", id}, {"Effect", "Allow"}, {"Action", actions}, {"Resource", std::move(resources)}};
}

// Log deliveries are not tied to a resource: AWS accepts these actions only for `*`.
Json LogStatement() {
  return Statement("DeliverLogs",
                   {"logs:CreateLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery",
                    "logs:DeleteLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy",
                    "logs:DescribeResourcePolicies", "logs:DescribeLogGroups"},
                   "*");
}

Json Policy(Json statements) {
  return {{"Version", "2012-10-17"}, {"Statement", std::move(statements)}};
}

class Deployment {
 public:
  Deployment(const Plan& plan, const CompiledPlan& compiled)
      : plan_(plan), compiled_(compiled), names_(plan) {}

  Result<std::vector<std::pair<std::string, Json>>> Make() {
    MUSTER_ASSIGN(machine_, names_.Fixed(plan_.names.machine));
    MUSTER_ASSIGN(log_group_, names_.Fixed(plan_.names.log_group));
    MUSTER_ASSIGN(region_, names_.Fixed("{region}"));
    MUSTER_ASSIGN(account_, names_.Fixed("{account}"));
    const Json orchestrator = OrchestratorPolicy();
    const Json rank = RankPolicy();
    MUSTER_ASSIGN(Json template_json, Template(orchestrator, rank));
    std::vector<std::pair<std::string, Json>> files;
    files.emplace_back("definition.asl.json", compiled_.main.definition);
    for (const RankMachine& machine : compiled_.ranks) {
      files.emplace_back("rank-" + std::to_string(machine.rank) + ".asl.json",
                         machine.machine.definition);
    }
    files.emplace_back("iam-orchestrator.json", orchestrator);
    files.emplace_back("iam-rank.json", rank);
    files.emplace_back("logging.json", Logging(LogGroupArn()));
    files.emplace_back("template.json", std::move(template_json));
    return files;
  }

 private:
  std::string Arn(const std::string& service, const std::string& rest) const {
    return "arn:aws:" + service + ":" + region_ + ":" + account_ + ":" + rest;
  }
  std::string LogGroupArn() const { return Arn("logs", "log-group:" + log_group_ + ":*"); }

  static Json Logging(Json log_group) {
    return {{"level", "ALL"},
            {"includeExecutionData", true},
            {"destinations",
             Json::array({{{"cloudWatchLogsLogGroup", {{"logGroupArn", std::move(log_group)}}}}})}};
  }

  Json OrchestratorPolicy() const {
    Json machines = Json::array();
    Json executions = Json::array();
    for (const RankMachine& rank : compiled_.ranks) {
      const std::string name = machine_ + "-rank-" + std::to_string(rank.rank);
      machines.push_back(Arn("states", "stateMachine:" + name));
      executions.push_back(Arn("states", "execution:" + name + ":*"));
    }
    return Policy(Json::array(
        {Statement("KeepStatus", {"dynamodb:PutItem", "dynamodb:UpdateItem"},
                   Arn("dynamodb", "table/" + names_.Pattern(plan_.names.status_table))),
         Statement("StartRanks", {"states:StartExecution"}, std::move(machines)),
         Statement("FollowRanks", {"states:DescribeExecution", "states:StopExecution"},
                   std::move(executions)),
         // How Step Functions learns that a child has ended.
         Statement("HearOfRanks", {"events:PutTargets", "events:PutRule", "events:DescribeRule"},
                   Arn("events", "rule/StepFunctionsGetEventsForStepFunctionsExecutionRule")),
         LogStatement()}));
  }

  Json RankPolicy() const {
    std::set<std::string> flows;
    std::set<std::string> jobs;
    for (const Rank& rank : plan_.ranks) {
      const std::string number = std::to_string(rank.number);
      for (const Reference& object : rank.extract) {
        flows.insert(
            Arn("appflow", "flow/" + names_.Pattern(plan_.names.flow,
                                                    {{"rank", number}, {"object", object.name}})));
      }
      for (const Reference& script : rank.transform) {
        jobs.insert(Arn(
            "glue",
            "job/" + names_.Pattern(plan_.names.job, {{"rank", number}, {"script", script.name}})));
      }
    }
    Json statements = Json::array();
    if (!flows.empty())
      statements.push_back(Statement(
          "Extract", {"appflow:StartFlow", "appflow:DescribeFlowExecutionRecords"}, flows));
    if (!jobs.empty())
      statements.push_back(Statement(
          "Transform",
          {"glue:StartJobRun", "glue:GetJobRun", "glue:GetJobRuns", "glue:BatchStopJobRun"}, jobs));
    statements.push_back(Statement("Notify", {"sns:Publish"}, names_.Pattern(plan_.names.topic)));
    statements.push_back(LogStatement());
    return Policy(std::move(statements));
  }

  static Json Role(const Json& policy) {
    const Json trust = Policy(Json::array({{{"Effect", "Allow"},
                                            {"Principal", {{"Service", "states.amazonaws.com"}}},
                                            {"Action", "sts:AssumeRole"}}}));
    return {
        {"Type", "AWS::IAM::Role"},
        {"Properties",
         {{"AssumeRolePolicyDocument", trust},
          {"Policies", Json::array({{{"PolicyName", "migration"}, {"PolicyDocument", policy}}})}}}};
  }

  static Json Attribute(const char* resource, const char* name) {
    return {{"Fn::GetAtt", Json::array({resource, name})}};
  }

  static Json StateMachine(const std::string& name, const Json& definition, const char* role,
                           Json depends_on) {
    // CloudFormation spells these like its other properties.
    const Json logging{
        {"Level", "ALL"},
        {"IncludeExecutionData", true},
        {"Destinations", Json::array({{{"CloudWatchLogsLogGroup",
                                        {{"LogGroupArn", Attribute("LogGroup", "Arn")}}}}})}};
    Json machine{{"Type", "AWS::StepFunctions::StateMachine"},
                 {"Properties",
                  {{"StateMachineName", name},
                   {"StateMachineType", "STANDARD"},
                   {"RoleArn", Attribute(role, "Arn")},
                   {"LoggingConfiguration", logging},
                   {"Definition", definition}}}};
    if (!depends_on.empty()) machine["DependsOn"] = std::move(depends_on);
    return machine;
  }

  Result<Json> Template(const Json& orchestrator, const Json& rank_policy) const {
    MUSTER_ASSIGN(const std::string table, names_.Fixed(plan_.names.status_table));
    MUSTER_ASSIGN(const std::string topic, names_.Fixed(plan_.names.topic));
    Json resources;
    // Records of migrations outlive the stack.
    resources["StatusTable"] = {
        {"Type", "AWS::DynamoDB::Table"},
        {"DeletionPolicy", "Retain"},
        {"UpdateReplacePolicy", "Retain"},
        {"Properties",
         {{"TableName", table},
          {"BillingMode", "PAY_PER_REQUEST"},
          {"AttributeDefinitions",
           Json::array({{{"AttributeName", "tenant_id"}, {"AttributeType", "S"}},
                        {{"AttributeName", "migration_id"}, {"AttributeType", "S"}}})},
          {"KeySchema",
           Json::array({{{"AttributeName", "tenant_id"}, {"KeyType", "HASH"}},
                        {{"AttributeName", "migration_id"}, {"KeyType", "RANGE"}}})}}}};
    resources["FailureTopic"] = {
        {"Type", "AWS::SNS::Topic"},
        {"Properties", {{"TopicName", topic.substr(topic.rfind(':') + 1)}}}};
    resources["LogGroup"] = {{"Type", "AWS::Logs::LogGroup"},
                             {"Properties", {{"LogGroupName", log_group_}}}};
    resources["OrchestratorRole"] = Role(orchestrator);
    resources["RankRole"] = Role(rank_policy);
    Json children = Json::array({"StatusTable"});
    for (const RankMachine& rank : compiled_.ranks) {
      const std::string number = std::to_string(rank.rank);
      resources["Rank" + number] =
          StateMachine(machine_ + "-rank-" + number, rank.machine.definition, "RankRole",
                       Json::array({"FailureTopic"}));
      children.push_back("Rank" + number);
    }
    resources["Orchestrator"] =
        StateMachine(machine_, compiled_.main.definition, "OrchestratorRole", children);
    return Json{{"AWSTemplateFormatVersion", "2010-09-09"},
                {"Description", "The migration plan " + plan_.name},
                {"Resources", std::move(resources)},
                {"Outputs", {{"StateMachineArn", {{"Value", {{"Ref", "Orchestrator"}}}}}}}};
  }

  const Plan& plan_;
  const CompiledPlan& compiled_;
  const Names names_;
  std::string machine_;
  std::string log_group_;
  std::string region_;
  std::string account_;
};

}  // namespace

Result<std::vector<std::pair<std::string, Json>>> MakeDeployment(const Plan& plan,
                                                                 const CompiledPlan& compiled) {
  return Deployment(plan, compiled).Make();
}

}  // namespace muster::plan
