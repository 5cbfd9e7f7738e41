#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "aws/moto_server.h"
#include "core/json.h"
#include "net/http.h"
#include "task/aws/aws_executor.h"
#include "task/test_context.h"

// The executor of AWS's services against moto, which imitates them: that both understand each other
// in every protocol, and that results and errors are as Step Functions shapes them.
namespace muster::task {
namespace {

using muster::testing::MotoServer;
using std::chrono::milliseconds;

class AwsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (MotoServer::Missing().empty()) moto = new MotoServer();
  }
  static void TearDownTestSuite() {
    delete moto;
    moto = nullptr;
  }

  void SetUp() override {
    if (moto == nullptr) GTEST_SKIP() << "no AWS to test with: " << MotoServer::Missing();
    Tell("reset", "");
    executor_ = MakeAwsExecutor(RealEnv(),
                                {.variable =
                                     [variables = moto->Variables()](const char* name) {
                                       const auto found = variables.find(name);
                                       return found == variables.end() ? "" : found->second;
                                     }},
                                milliseconds(1));
  }

  // moto's own settings.
  static void Tell(const std::string& what, const std::string& body) {
    net::HttpClient http;
    const auto answer = http.Send({.method = "POST",
                                   .url = moto->Url() + "/moto-api/" + what,
                                   .headers = {{"Content-Type", "application/json"}},
                                   .body = body});
    ASSERT_TRUE(answer) << answer.error().ToString();
    ASSERT_LT(answer->status, 300) << answer->body;
  }

  static states::TaskCall Call(const std::string& name, const Json& input) {
    return {.resource = "arn:aws:states:::" + name,
            .input = input,
            .credentials = {},
            .token = "run:/:1:" + input.dump(),
            .execution = "run",
            .state = "S"};
  }

  states::TaskOutcome Start(const std::string& name, const Json& input) {
    return executor_->Start(Call(name, input), context_);
  }

  Json Output(const states::TaskOutcome& outcome) {
    if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
      ADD_FAILURE() << failure->error << ": " << failure->cause;
    }
    const auto* success = std::get_if<states::TaskSuccess>(&outcome);
    return success == nullptr ? Json::object() : success->output;
  }
  Json Run(const std::string& name, const Json& input) { return Output(Start(name, input)); }

  std::string ErrorName(const std::string& name, const Json& input) {
    const auto outcome = Start(name, input);
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    return failure == nullptr ? "no error" : failure->error;
  }

  // Until it has ended.
  Json Await(const std::string& name, const Json& input) {
    auto outcome = Start(name, input);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (const auto* pending = std::get_if<states::TaskPending>(&outcome)) {
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "still pending: " << pending->resume;
        return {};
      }
      const Json resume = pending->resume;
      outcome = executor_->Poll(Call(name, input), resume, context_);
    }
    return Output(outcome);
  }

  static MotoServer* moto;
  std::unique_ptr<states::TaskExecutor> executor_;
  TestContext context_;
};

MotoServer* AwsTest::moto = nullptr;

TEST_F(AwsTest, DynamoDb) {
  const Json table = Run("aws-sdk:dynamodb:createTable", Json::parse(R"({
      "TableName": "t", "BillingMode": "PAY_PER_REQUEST",
      "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
      "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]})"));
  EXPECT_EQ(table["TableDescription"]["TableName"], "t");
  EXPECT_TRUE(table["TableDescription"]["CreationDateTime"].is_string()) << table;
  const Json put = Json::parse(R"j({"TableName": "t", "Item": {"id": {"S": "1"}, "n": {"N": "7"}},
      "ConditionExpression": "attribute_not_exists(id)"})j");
  EXPECT_EQ(Run("dynamodb:putItem", put)["SdkHttpMetadata"]["HttpStatusCode"], 200);
  EXPECT_EQ(ErrorName("dynamodb:putItem", put), "DynamoDB.ConditionalCheckFailedException");
  EXPECT_EQ(ErrorName("aws-sdk:dynamodb:putItem", put), "DynamoDb.ConditionalCheckFailedException");
  EXPECT_EQ(Run("dynamodb:getItem",
                Json::parse(R"({"TableName": "t", "Key": {"id": {"S": "1"}}})"))["Item"],
            put["Item"]);
  EXPECT_EQ(ErrorName("dynamodb:getItem",
                      Json::parse(R"({"TableName": "none", "Key": {"id": {"S": "1"}}})")),
            "DynamoDB.ResourceNotFoundException");
  EXPECT_EQ(Run("aws-sdk:dynamodb:scan", {{"TableName", "t"}})["Count"], 1);
}

TEST_F(AwsTest, Sqs) {
  const std::string url = Run("aws-sdk:sqs:createQueue", {{"QueueName", "q"}})["QueueUrl"];
  const Json sent =
      Run("sqs:sendMessage", {{"QueueUrl", url}, {"MessageBody", {{"hello", "world"}}}});
  EXPECT_TRUE(sent["MessageId"].is_string()) << sent;
  const Json received = Run("aws-sdk:sqs:receiveMessage", {{"QueueUrl", url}});
  EXPECT_EQ(received["Messages"][0]["Body"], R"({"hello":"world"})");
  EXPECT_EQ(received["Messages"][0]["MessageId"], sent["MessageId"]);
}

TEST_F(AwsTest, Sns) {
  const std::string topic = Run("aws-sdk:sns:createTopic", {{"Name", "t"}})["TopicArn"];
  const Json published = Run(
      "sns:publish",
      Json{{"TopicArn", topic},
           {"Message", {{"a", 1}}},
           {"MessageAttributes", {{"kind", {{"DataType", "String"}, {"StringValue", "test"}}}}}});
  EXPECT_TRUE(published["MessageId"].is_string()) << published;
  EXPECT_EQ(Run("aws-sdk:sns:listTopics", Json::object())["Topics"][0]["TopicArn"], topic);
  EXPECT_EQ(ErrorName("sns:publish", {{"TopicArn", topic + "x"}, {"Message", "m"}}),
            "SNS.NotFoundException");
}

TEST_F(AwsTest, SecretsAndIdentity) {
  Run("aws-sdk:secretsmanager:createSecret", {{"Name", "s"}, {"SecretString", "v"}});
  EXPECT_EQ(Run("aws-sdk:secretsmanager:getSecretValue", {{"SecretId", "s"}})["SecretString"], "v");
  EXPECT_EQ(ErrorName("aws-sdk:secretsmanager:getSecretValue", {{"SecretId", "none"}}),
            "SecretsManager.ResourceNotFoundException");
  EXPECT_EQ(Run("aws-sdk:sts:getCallerIdentity", Json::object())["Account"], "123456789012");
}

TEST_F(AwsTest, GlueJobIsStartedOnceAndCompletes) {
  Tell("state-manager/set-transition",
       R"({"model_name": "glue::job_run", "transition": {"progression": "manual", "times": 2}})");
  Run("aws-sdk:glue:createJob", Json::parse(R"({"Name": "j", "Role": "r",
      "ExecutionProperty": {"MaxConcurrentRuns": 1},
      "Command": {"Name": "glueetl", "ScriptLocation": "s3://b/s.py"}})"));
  const Json input = {{"JobName", "j"}, {"Arguments", {{"--rank", "1"}}}};
  const Json run = Await("glue:startJobRun.sync", input);
  EXPECT_EQ(run["JobRunState"], "SUCCEEDED");
  EXPECT_EQ(run["JobName"], "j");
  // The same call again: the same run.
  EXPECT_EQ(Await("glue:startJobRun.sync", input)["Id"], run["Id"]);
  EXPECT_EQ(Run("aws-sdk:glue:getJobRuns", {{"JobName", "j"}})["JobRuns"].size(), 1U);
  EXPECT_EQ(ErrorName("glue:startJobRun.sync", {{"JobName", "none"}}),
            "Glue.EntityNotFoundException");
}

TEST_F(AwsTest, ExecutionIsStartedOnceAndCompletes) {
  Tell("config", R"({"stepfunctions": {"execute_state_machine": true}})");
  const Json machine = Run(
      "aws-sdk:sfn:createStateMachine",
      {{"Name", "m"},
       {"RoleArn", "arn:aws:iam::123456789012:role/r"},
       {"Definition",
        R"({"StartAt":"P","States":{"P":{"Type":"Pass","Result":{"done":true},"End":true}}})"}});
  EXPECT_TRUE(machine["CreationDate"].is_string()) << machine;
  const Json input = {{"StateMachineArn", machine["StateMachineArn"]}, {"Input", {{"a", 1}}}};
  const Json execution = Await("states:startExecution.sync:2", input);
  EXPECT_EQ(execution["Status"], "SUCCEEDED");
  EXPECT_EQ(execution["Output"], Json::parse(R"({"done":true})"));
  EXPECT_EQ(execution["Input"], Json::parse(R"({"a":1})"));
  // Without :2 the output is text; moto puts a space into it.
  EXPECT_EQ(Await("states:startExecution.sync", input)["Output"], R"({"done": true})");
  EXPECT_EQ(Run("aws-sdk:sfn:listExecutions",
                {{"StateMachineArn", machine["StateMachineArn"]}})["Executions"]
                .size(),
            1U);
}

}  // namespace
}  // namespace muster::task
