#include "task/call/http_executor.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/json.h"
#include "support/http_server.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

using muster::testing::Answer;
using muster::testing::HttpServer;
using muster::testing::HttpServerReply;
using muster::testing::HttpServerRequest;

class HttpExecutorTest : public ::testing::Test {
 protected:
  states::TaskOutcome Start(Json input, std::optional<std::chrono::milliseconds> timeout = {}) {
    if (!input.contains("ApiEndpoint")) input["ApiEndpoint"] = server_.Url("/api");
    return executor_->Start({.resource = "muster:http",
                             .input = std::move(input),
                             .credentials = {},
                             .token = "t",
                             .execution = "run",
                             .state = "S",
                             .timeout = timeout,
                             .references = references_},
                            context_);
  }
  static states::TaskFailure Failure(const states::TaskOutcome& outcome) {
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    EXPECT_NE(failure, nullptr);
    return failure == nullptr ? states::TaskFailure{} : *failure;
  }

  HttpServerReply reply_ = Answer(200, R"({"ok":1})", {{"Content-Type", "application/json"}});
  HttpServer server_{[this](const HttpServerRequest&) { return reply_; }};
  std::unique_ptr<states::TaskExecutor> executor_ = MakeHttpExecutor();
  TestContext context_;
  std::map<std::string, std::vector<std::string>> references_;  // those of the definition
};

TEST_F(HttpExecutorTest, RequestFollowsItsParameters) {
  setenv("MUSTER_HTTP_TEST_TOKEN", "s3cr3t", 1);
  references_ = {{"/Headers/Authorization", {"Bearer ${env:MUSTER_HTTP_TEST_TOKEN}"}}};
  const auto outcome =
      Start({{"Method", "POST"},
             {"Headers", {{"Authorization", "Bearer ${env:MUSTER_HTTP_TEST_TOKEN}"}}},
             {"QueryParameters", {{"page", 1}, {"tag", {"a b", "c"}}}},
             {"RequestBody", {{"x", "y"}}}});
  const auto* success = std::get_if<states::TaskSuccess>(&outcome);
  ASSERT_NE(success, nullptr);
  EXPECT_EQ(success->output["StatusCode"], 200);
  EXPECT_EQ(success->output["StatusText"], "OK");
  EXPECT_EQ(success->output["ResponseBody"], Json::parse(R"({"ok":1})"));
  EXPECT_EQ(success->output["Headers"]["Content-Type"], Json::parse(R"(["application/json"])"));
  const auto request = server_.requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/api?page=1&tag=a%20b&tag=c");
  EXPECT_EQ(request.Header("Authorization"), "Bearer s3cr3t");
  EXPECT_EQ(request.Header("Content-Type"), "application/json");
  EXPECT_EQ(request.Header("Idempotency-Key").size(), 32U);
  EXPECT_EQ(request.body, R"({"x":"y"})");
}

TEST_F(HttpExecutorTest, ABodyMayBeAFormOrText) {
  Start({{"Method", "POST"},
         {"Headers", {{"Content-Type", "application/x-www-form-urlencoded"}}},
         {"RequestBody", {{"a", "b c"}, {"n", 2}}}});
  EXPECT_EQ(server_.requests().at(0).body, "a=b%20c&n=2");
  Start({{"Method", "PUT"}, {"RequestBody", "plain"}});
  EXPECT_EQ(server_.requests().at(1).body, "plain");
  EXPECT_EQ(server_.requests().at(1).Header("Content-Type"), "text/plain");
}

TEST_F(HttpExecutorTest, AReadCarriesNoToken) {
  Start({{"Method", "GET"}});
  EXPECT_EQ(server_.requests().at(0).Header("Idempotency-Key"), "");
}

TEST_F(HttpExecutorTest, ErrorStatusIsANamedFailure) {
  reply_ = Answer(404, "gone");
  const auto failure = Failure(Start({{"Method", "GET"}}));
  EXPECT_EQ(failure.error, "States.Http.StatusCode.404");
  EXPECT_EQ(Json::parse(failure.cause)["ResponseBody"], "gone");
}

TEST_F(HttpExecutorTest, NoAnswerIsAFailure) {
  EXPECT_EQ(Failure(Start({{"Method", "GET"}, {"ApiEndpoint", "http://127.0.0.1:1/"}})).error,
            "States.Http.Socket");
  reply_ = muster::testing::NeverAnswer();
  EXPECT_EQ(Failure(Start({{"Method", "GET"}}, std::chrono::milliseconds(100))).error,
            "States.Timeout");
}

TEST_F(HttpExecutorTest, PermanentFailuresAreNotNetworkFailures) {
  EXPECT_EQ(Failure(Start({{"Method", "GET"}, {"ApiEndpoint", "no url"}})).error, "States.Runtime");
  reply_ = Answer(200, std::string(300'000, 'x'));
  EXPECT_EQ(Failure(Start({{"Method", "GET"}})).error, "States.DataLimitExceeded");
}

TEST_F(HttpExecutorTest, WrongParametersAreRefused) {
  references_ = {{"/Headers/A", {"${env:MUSTER_NO_SUCH_VARIABLE}"}}};
  for (const char* input :
       {"{}", R"({"Method":1})", R"({"Method":"GET","Headers":[]})",
        R"({"Method":"GET","QueryParameters":[1]})",
        R"({"Method":"GET","Authentication":{"ConnectionArn":"a"}})",
        R"({"Method":"GET","Headers":{"A":"${env:MUSTER_NO_SUCH_VARIABLE}"}})"}) {
    EXPECT_EQ(Failure(Start(Json::parse(input))).error, "States.Runtime") << input;
  }
  EXPECT_TRUE(server_.requests().empty());
}

}  // namespace
}  // namespace muster::task
