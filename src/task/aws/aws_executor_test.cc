#include "task/aws/aws_executor.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <mutex>

#include "core/json.h"
#include "support/http_server.h"
#include "task/test_context.h"

// Tests the executor against a server with prepared answers: requests on the wire, and results.
// tests/aws uses a server that imitates AWS.
namespace muster::task {
namespace {

using muster::testing::Answer;
using muster::testing::CloseWithoutAnswer;
using muster::testing::HttpServer;
using muster::testing::HttpServerReply;
using muster::testing::HttpServerRequest;

class AwsExecutorTest : public ::testing::Test {
 protected:
  // Answers to return, in order.
  void Prepare(HttpServerReply reply) {
    const std::lock_guard lock(mutex_);
    replies_.push_back(std::move(reply));
  }
  void Prepare(int status, const std::string& body) {
    Prepare(Answer(status, body, {{"x-amzn-RequestId", "r-1"}}));
  }

  states::TaskOutcome Start(const std::string& resource, const Json& input) {
    return executor_->Start(Call(resource, input), context_);
  }

  static states::TaskCall Call(const std::string& resource, const Json& input) {
    return {.resource = resource,
            .input = input,
            .credentials = {},
            .token = "run:/:1:0",
            .execution = "run",
            .state = "S"};
  }

  Json Output(const states::TaskOutcome& outcome) {
    if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
      ADD_FAILURE() << failure->error << ": " << failure->cause;
    }
    const auto* success = std::get_if<states::TaskSuccess>(&outcome);
    return success == nullptr ? Json() : success->output;
  }

  states::TaskFailure Failure(const states::TaskOutcome& outcome) {
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    EXPECT_NE(failure, nullptr);
    return failure == nullptr ? states::TaskFailure{} : *failure;
  }

  Json Body(size_t request) { return Json::parse(server_.requests().at(request).body); }

  std::mutex mutex_;
  std::deque<HttpServerReply> replies_;
  HttpServer server_{[this](const HttpServerRequest&) {
    const std::lock_guard lock(mutex_);
    if (replies_.empty()) return Answer(500, "unexpected");
    HttpServerReply reply = std::move(replies_.front());
    replies_.pop_front();
    return reply;
  }};
  std::map<std::string, std::string> variables_ = {{"AWS_REGION", "eu-central-1"},
                                                   {"AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"},
                                                   {"AWS_SECRET_ACCESS_KEY", "a secret key"},
                                                   {"AWS_ENDPOINT_URL", server_.Url("/")}};
  std::unique_ptr<states::TaskExecutor> executor_ =
      MakeAwsExecutor(RealEnv(),
                      {.variable =
                           [this](const char* name) {
                             const auto found = variables_.find(name);
                             return found == variables_.end() ? "" : found->second;
                           }},
                      std::chrono::milliseconds(1));
  TestContext context_;
};

TEST_F(AwsExecutorTest, RunsWhatItKnows) {
  for (const char* resource :
       {"arn:aws:states:::aws-sdk:secretsmanager:createSecret",
        "arn:aws-cn:states:::aws-sdk:dynamodb:putItem", "arn:aws:states:::dynamodb:putItem",
        "arn:aws:states:::sqs:sendMessage.waitForTaskToken", "arn:aws:states:::lambda:invoke",
        "arn:aws:states:::glue:startJobRun.sync", "arn:aws:states:::states:startExecution.sync:2",
        "arn:aws:lambda:us-east-1:123456789012:function:f", "arn:aws:states:::sns:publish",
        "arn:aws:states:::aws-sdk:appflow:startFlow"}) {
    EXPECT_TRUE(executor_->Runs(resource)) << resource;
  }
  for (const char* resource : {"muster:exec", "arn:aws:states:::aws-sdk:nosuch:act",
                               "arn:aws:states:::dynamodb:scan", "arn:aws:states:::x", ""}) {
    EXPECT_FALSE(executor_->Runs(resource)) << resource;
  }
}

TEST_F(AwsExecutorTest, AnyActionIsCalledSigned) {
  Prepare(200, R"({"ARN":"a","CreatedDate":1700000000})");
  const Json output =
      Output(Start("arn:aws:states:::aws-sdk:secretsmanager:describeSecret", {{"SecretId", "s"}}));
  EXPECT_EQ(output, Json::parse(R"({"ARN":"a","CreatedDate":"2023-11-14T22:13:20Z"})"));
  const auto request = server_.requests().at(0);
  EXPECT_EQ(request.target, "/");
  EXPECT_EQ(request.Header("X-Amz-Target"), "secretsmanager.DescribeSecret");
  EXPECT_NE(request.Header("Authorization").find("/eu-central-1/secretsmanager/aws4_request"),
            std::string::npos);
  EXPECT_EQ(request.body, R"({"SecretId":"s"})");
}

TEST_F(AwsExecutorTest, ClientTokensAreFilledInAndStable) {
  for (int i = 0; i < 2; ++i) {
    Prepare(200, "{}");
    Output(Start("arn:aws:states:::aws-sdk:dynamodb:transactWriteItems",
                 {{"TransactItems", Json::array()}}));
  }
  const std::string token = Body(0)["ClientRequestToken"];
  EXPECT_EQ(token.size(), 36U);
  EXPECT_EQ(Body(1)["ClientRequestToken"], token);

  Prepare(200, "{}");
  Output(Start("arn:aws:states:::aws-sdk:dynamodb:transactWriteItems",
               {{"TransactItems", Json::array()}, {"ClientRequestToken", "mine"}}));
  EXPECT_EQ(Body(2)["ClientRequestToken"], "mine");

  Prepare(200, R"({"flowArn":"f","executionId":"e"})");
  EXPECT_EQ(Output(Start("arn:aws:states:::aws-sdk:appflow:startFlow", {{"FlowName", "f"}})),
            Json::parse(R"({"FlowArn":"f","ExecutionId":"e"})"));
  EXPECT_EQ(server_.requests().at(3).target, "/start-flow");
  EXPECT_EQ(Body(3)["clientToken"], token);
}

TEST_F(AwsExecutorTest, ErrorsAreNamedAsStepFunctionsNamesThem) {
  const std::string condition =
      R"({"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
          "message":"The conditional request failed"})";
  const std::string validation =
      R"({"__type":"com.amazon.coral.validate#ValidationException","message":"bad"})";
  Prepare(400, condition);
  auto failure = Failure(Start("arn:aws:states:::dynamodb:putItem", {{"TableName", "t"}}));
  EXPECT_EQ(failure.error, "DynamoDB.ConditionalCheckFailedException");
  EXPECT_EQ(failure.cause,
            "The conditional request failed (Service: AmazonDynamoDBv2; Status Code: 400; Error "
            "Code: ConditionalCheckFailedException; Request ID: r-1; Proxy: null)");
  Prepare(400, validation);
  EXPECT_EQ(Failure(Start("arn:aws:states:::dynamodb:putItem", Json::object())).error,
            "DynamoDB.AmazonDynamoDBException");
  Prepare(400, condition);
  failure = Failure(Start("arn:aws:states:::aws-sdk:dynamodb:putItem", Json::object()));
  EXPECT_EQ(failure.error, "DynamoDb.ConditionalCheckFailedException");
  EXPECT_EQ(failure.cause,
            "The conditional request failed (Service: DynamoDb, Status Code: 400, Request ID: "
            "r-1)");
  Prepare(400, validation);
  EXPECT_EQ(Failure(Start("arn:aws:states:::aws-sdk:dynamodb:putItem", Json::object())).error,
            "DynamoDb.DynamoDbException");
  Prepare(404,
          "<ErrorResponse><Error><Code>NotFound</Code><Message>no topic</Message></Error>"
          "<RequestId>r-2</RequestId></ErrorResponse>");
  EXPECT_EQ(Failure(Start("arn:aws:states:::sns:publish", Json::object())).error,
            "SNS.NotFoundException");
}

TEST_F(AwsExecutorTest, ThrottlingIsTriedAgain) {
  Prepare(400, R"({"__type":"ThrottlingException","message":"slow down"})");
  Prepare(503, "");
  Prepare(200, R"({"Item":{"a":{"S":"x"}}})");
  const Json output = Output(Start("arn:aws:states:::dynamodb:getItem", {{"TableName", "t"}}));
  EXPECT_EQ(output["Item"], Json::parse(R"({"a":{"S":"x"}})"));
  EXPECT_EQ(output["SdkHttpMetadata"]["HttpStatusCode"], 200);
  EXPECT_EQ(output["SdkResponseMetadata"]["RequestId"], "r-1");
  EXPECT_EQ(server_.requests().size(), 3U);
}

TEST_F(AwsExecutorTest, AWriteWithoutAnAnswerIsNotRepeated) {
  Prepare(CloseWithoutAnswer());
  const auto failure = Failure(Start("arn:aws:states:::dynamodb:putItem", {{"TableName", "t"}}));
  EXPECT_EQ(failure.error, "DynamoDB.SdkClientException");
  EXPECT_EQ(failure.cause.find("Unable to execute HTTP request: "), 0U) << failure.cause;
  EXPECT_EQ(server_.requests().size(), 1U);
}

TEST_F(AwsExecutorTest, AWriteWithATokenIsRepeated) {
  Prepare(CloseWithoutAnswer());
  Prepare(200, "{}");
  Output(Start("arn:aws:states:::aws-sdk:dynamodb:transactWriteItems", Json::object()));
  EXPECT_EQ(server_.requests().size(), 2U);
  EXPECT_EQ(server_.requests().at(0).body, server_.requests().at(1).body);
}

TEST_F(AwsExecutorTest, MessagesMayBeGivenAsJson) {
  Prepare(200, R"({"MessageId":"m","MD5OfMessageBody":"x"})");
  Output(
      Start("arn:aws:states:::sqs:sendMessage", {{"QueueUrl", "q"}, {"MessageBody", {{"a", 1}}}}));
  EXPECT_EQ(Body(0)["MessageBody"], R"({"a":1})");
  EXPECT_EQ(server_.requests().at(0).Header("X-Amz-Target"), "AmazonSQS.SendMessage");
  Prepare(200,
          "<PublishResponse><PublishResult><MessageId>m</MessageId></PublishResult>"
          "</PublishResponse>");
  const Json output =
      Output(Start("arn:aws:states:::sns:publish", {{"TopicArn", "t"}, {"Message", {{"a", 1}}}}));
  EXPECT_EQ(output["MessageId"], "m");
  EXPECT_NE(server_.requests().at(1).body.find("Message=%7B%22a%22%3A1%7D"), std::string::npos);
}

TEST_F(AwsExecutorTest, AFunctionIsInvoked) {
  Prepare(Answer(200, R"({"ok":true})", {{"X-Amz-Executed-Version", "3"}}));
  const Json output =
      Output(Start("arn:aws:states:::lambda:invoke",
                   {{"FunctionName", "arn:aws:lambda:x:y:function:f"}, {"Payload", {{"a", 1}}}}));
  EXPECT_EQ(output["Payload"], Json::parse(R"({"ok":true})"));
  EXPECT_EQ(output["ExecutedVersion"], "3");
  EXPECT_EQ(output["StatusCode"], 200);
  EXPECT_EQ(server_.requests().at(0).target,
            "/2015-03-31/functions/arn%3Aaws%3Alambda%3Ax%3Ay%3Afunction%3Af/invocations");
  EXPECT_EQ(server_.requests().at(0).body, R"({"a":1})");

  Prepare(200, "17");
  EXPECT_EQ(Output(Start("arn:aws:lambda:us-east-1:1:function:f", {{"b", 2}})), Json(17));
  EXPECT_EQ(server_.requests().at(1).body, R"({"b":2})");
}

TEST_F(AwsExecutorTest, AFunctionsErrorIsTheTasks) {
  const std::string error = R"({"errorMessage":"no","errorType":"ValueError","stackTrace":[]})";
  Prepare(Answer(200, error, {{"X-Amz-Function-Error", "Unhandled"}}));
  const auto failure = Failure(Start("arn:aws:states:::lambda:invoke", {{"FunctionName", "f"}}));
  EXPECT_EQ(failure.error, "ValueError");
  EXPECT_EQ(failure.cause, error);
  EXPECT_EQ(Failure(Start("arn:aws:states:::lambda:invoke", Json::object())).error,
            "States.Runtime");
}

TEST_F(AwsExecutorTest, AGlueJobIsStartedOnceAndWaitedFor) {
  const std::string resource = "arn:aws:states:::glue:startJobRun.sync";
  const Json input = {{"JobName", "j"}, {"Arguments", {{"--a", "b"}}}};
  Prepare(200, R"({"JobRuns":[{"Id":"other","Arguments":{"--muster-token":"another"}}]})");
  Prepare(200, R"({"JobRunId":"jr_1"})");
  auto outcome = Start(resource, input);
  auto* pending = std::get_if<states::TaskPending>(&outcome);
  ASSERT_NE(pending, nullptr);
  EXPECT_EQ(pending->resume, Json::parse(R"({"JobName":"j","JobRunId":"jr_1"})"));
  EXPECT_EQ(Body(1)["Arguments"], Json::parse(R"({"--a":"b","--muster-token":"run:/:1:0"})"));

  // The same call again, after a crash: the run is found by its token.
  Prepare(200, R"({"JobRuns":[{"Id":"jr_1","Arguments":{"--muster-token":"run:/:1:0"}}]})");
  auto again = Start(resource, input);
  ASSERT_NE(std::get_if<states::TaskPending>(&again), nullptr);
  EXPECT_EQ(std::get_if<states::TaskPending>(&again)->resume, pending->resume);

  Prepare(200, R"({"JobRun":{"Id":"jr_1","JobRunState":"RUNNING"}})");
  auto running = executor_->Poll(Call(resource, input), pending->resume, context_);
  EXPECT_NE(std::get_if<states::TaskPending>(&running), nullptr);
  // An unreachable Glue is no evidence about the job.
  for (int i = 0; i < 3; ++i) Prepare(500, "");
  running = executor_->Poll(Call(resource, input), pending->resume, context_);
  EXPECT_NE(std::get_if<states::TaskPending>(&running), nullptr);
  Prepare(200, R"({"JobRun":{"Id":"jr_1","JobRunState":"SUCCEEDED","CompletedOn":1700000000.5}})");
  EXPECT_EQ(Output(executor_->Poll(Call(resource, input), pending->resume, context_)),
            Json::parse(R"({"Id":"jr_1","JobRunState":"SUCCEEDED","CompletedOn":1700000000500})"));
  Prepare(200, R"({"JobRun":{"Id":"jr_1","JobRunState":"FAILED","ErrorMessage":"boom"}})");
  const auto failure = Failure(executor_->Poll(Call(resource, input), pending->resume, context_));
  EXPECT_EQ(failure.error, "States.TaskFailed");
  EXPECT_EQ(failure.cause, R"({"Id":"jr_1","JobRunState":"FAILED","ErrorMessage":"boom"})");

  Prepare(200, "{}");
  executor_->Cancel(Call(resource, input), pending->resume, context_);
  EXPECT_EQ(server_.requests().back().Header("X-Amz-Target"), "AWSGlue.BatchStopJobRun");
}

TEST_F(AwsExecutorTest, AGlueStartWithoutAnAnswerIsLookedUp) {
  Prepare(200, R"({"JobRuns":[]})");
  Prepare(CloseWithoutAnswer());
  Prepare(200, R"({"JobRuns":[{"Id":"jr_9","Arguments":{"--muster-token":"run:/:1:0"}}]})");
  const auto outcome = Start("arn:aws:states:::glue:startJobRun.sync", {{"JobName", "j"}});
  const auto* pending = std::get_if<states::TaskPending>(&outcome);
  ASSERT_NE(pending, nullptr);
  EXPECT_EQ(pending->resume["JobRunId"], "jr_9");
}

TEST_F(AwsExecutorTest, GlueJobWithTooManyRunsHasItsOwnError) {
  Prepare(200, R"({"JobRuns":[]})");
  Prepare(400, R"({"__type":"ConcurrentRunsExceededException","message":"max 1"})");
  EXPECT_EQ(Failure(Start("arn:aws:states:::glue:startJobRun.sync", {{"JobName", "j"}})).error,
            "Glue.ConcurrentRunsExceededException");
}

TEST_F(AwsExecutorTest, AnExecutionIsStartedByNameAndWaitedFor) {
  const std::string machine = "arn:aws:states:eu-central-1:1:stateMachine:m";
  const std::string arn = "arn:aws:states:eu-central-1:1:execution:m:";
  const std::string resource = "arn:aws:states:::states:startExecution.sync:2";
  const Json input = {{"StateMachineArn", machine}, {"Input", {{"a", 1}}}};
  Prepare(200, R"({"executionArn":"x","startDate":1700000000})");
  auto outcome = Start(resource, input);
  ASSERT_NE(std::get_if<states::TaskPending>(&outcome), nullptr);
  const std::string name = Body(0)["name"];
  EXPECT_EQ(Body(0)["input"], R"({"a":1})");

  // The same call again, after it has ended.
  Prepare(400, R"({"__type":"ExecutionAlreadyExists","message":"exists"})");
  outcome = Start(resource, input);
  const auto* pending = std::get_if<states::TaskPending>(&outcome);
  ASSERT_NE(pending, nullptr);
  EXPECT_EQ(pending->resume["ExecutionArn"], arn + name);

  const std::string done = R"({"executionArn":"x","status":"SUCCEEDED","input":"{\"a\":1}",
      "output":"{\"b\":[2]}","startDate":1700000000.25,"inputDetails":{"included":true}})";
  Prepare(200, done);
  EXPECT_EQ(Output(executor_->Poll(Call(resource, input), pending->resume, context_)),
            Json::parse(R"({"ExecutionArn":"x","Status":"SUCCEEDED","Input":{"a":1},
                "Output":{"b":[2]},"StartDate":1700000000250,"InputDetails":{"Included":true}})"));
  Prepare(200, done);
  EXPECT_EQ(Output(executor_->Poll(Call("arn:aws:states:::states:startExecution.sync", input),
                                   pending->resume, context_))["Output"],
            R"({"b":[2]})");
  Prepare(200, R"({"executionArn":"x","status":"FAILED","error":"E","cause":"C"})");
  const auto failure = Failure(executor_->Poll(Call(resource, input), pending->resume, context_));
  EXPECT_EQ(failure.error, "States.TaskFailed");
  EXPECT_EQ(Json::parse(failure.cause)["Error"], "E");
}

TEST_F(AwsExecutorTest, MissingCredentialsOrRegionHaveAHint) {
  variables_.erase("AWS_REGION");
  auto failure = Failure(Start("arn:aws:states:::dynamodb:getItem", Json::object()));
  EXPECT_EQ(failure.error, "DynamoDB.SdkClientException");
  EXPECT_NE(failure.cause.find("set AWS_REGION"), std::string::npos) << failure.cause;
}

TEST_F(AwsExecutorTest, ServiceCanHaveASeparateEndpoint) {
  variables_["AWS_ENDPOINT_URL"] = "http://127.0.0.1:1";
  variables_["AWS_ENDPOINT_URL_DYNAMODB"] = server_.Url("/");
  Prepare(200, "{}");
  Output(Start("arn:aws:states:::dynamodb:getItem", Json::object()));
  EXPECT_EQ(server_.requests().size(), 1U);
}

TEST_F(AwsExecutorTest, AnotherRoleIsRefused) {
  states::TaskCall call = Call("arn:aws:states:::dynamodb:getItem", Json::object());
  call.credentials = {{"RoleArn", "arn:aws:iam::1:role/r"}};
  EXPECT_EQ(Failure(executor_->Start(call, context_)).error, "States.Runtime");
}

TEST_F(AwsExecutorTest, AStopEndsACall) {
  Prepare(muster::testing::NeverAnswer());
  std::jthread stopper([&] {
    while (server_.requests().empty()) std::this_thread::yield();
    context_.stopping.request_stop();
  });
  EXPECT_EQ(Failure(Start("arn:aws:states:::dynamodb:getItem", Json::object())).error,
            "DynamoDB.SdkClientException");
}

}  // namespace
}  // namespace muster::task
