#include "task/notify_executor.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "support/http_server.h"
#include "support/temporary_folder.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

// Stands in for the services of AWS: keeps what it was asked.
class RecordingAws : public TaskExecutor {
 public:
  bool Runs(std::string_view) const override { return true; }
  TaskOutcome Start(const TaskCall& call, TaskContext&) override {
    calls.push_back(call);
    return TaskSuccess{};
  }
  TaskOutcome Poll(const TaskCall&, const Json&, TaskContext&) override { return TaskSuccess{}; }
  void Cancel(const TaskCall&, const Json&, TaskContext&) override {}

  std::vector<TaskCall> calls;
};

class NotifyExecutorTest : public ::testing::Test {
 protected:
  TaskOutcome Start(const Json& targets, const std::string& dedupe = "m-1/600/User") {
    return executor_->Start({.resource = "muster:notify",
                             .input = Json{{"targets", targets},
                                           {"subject", "it failed"},
                                           {"message", {{"rank", 600}}},
                                           {"dedupe", dedupe}},
                             .credentials = nullptr,
                             .token = "t",
                             .execution = "run",
                             .state = "Tell"},
                            context_);
  }
  void Succeed(const Json& targets, const std::string& dedupe = "m-1/600/User") {
    const auto outcome = Start(targets, dedupe);
    const auto* failure = std::get_if<TaskFailure>(&outcome);
    EXPECT_EQ(failure, nullptr) << failure->cause;
  }
  std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  testing::TemporaryFolder folder_;
  RecordingAws aws_;
  std::unique_ptr<TaskExecutor> executor_ = MakeNotifyExecutor(aws_);
  TestContext context_;
};

TEST_F(NotifyExecutorTest, AFileHasEachKeyOnce) {
  const std::string path = folder_.At("news.jsonl");
  Succeed({"file:" + path});
  Succeed({"file:" + path});
  Succeed({"file:" + path}, "other");
  EXPECT_EQ(Read(path), R"({"dedupe":"m-1/600/User","subject":"it failed","message":{"rank":600}})"
                        "\n"
                        R"({"dedupe":"other","subject":"it failed","message":{"rank":600}})"
                        "\n");
}

TEST_F(NotifyExecutorTest, AWebhookIsToldTheKey) {
  const testing::HttpServer server([](const auto&) { return testing::Answer(204, ""); });
  Succeed({server.Url("/hook")});
  ASSERT_EQ(server.requests().size(), 1u);
  const auto request = server.requests()[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.Header("Idempotency-Key"), "m-1/600/User");
  EXPECT_EQ(Json::parse(request.body)["message"], (Json{{"rank", 600}}));
}

TEST_F(NotifyExecutorTest, ACommandGetsSubjectAndMessage) {
  const std::string path = folder_.At("mail");
  Succeed({"command:echo \"$MUSTER_SUBJECT|$MUSTER_DEDUPE\" >" + path + "; cat >>" + path});
  EXPECT_EQ(Read(path), "it failed|m-1/600/User\n{\"rank\":600}\n");
}

TEST_F(NotifyExecutorTest, ATopicIsPublishedTo) {
  Succeed({"arn:aws:sns:us-east-1:42:failures"});
  ASSERT_EQ(aws_.calls.size(), 1u);
  EXPECT_EQ(aws_.calls[0].resource, "arn:aws:states:::sns:publish");
  EXPECT_EQ(aws_.calls[0].input, (Json{{"TopicArn", "arn:aws:sns:us-east-1:42:failures"},
                                       {"Subject", "it failed"},
                                       {"Message", {{"rank", 600}}}}));
}

TEST_F(NotifyExecutorTest, OneThatFailsDoesNotKeepItFromTheOthers) {
  const testing::HttpServer server([](const auto&) { return testing::Answer(500, ""); });
  const std::string path = folder_.At("news.jsonl");
  const auto outcome = Start({server.Url("/hook"), "command:exit 3", "sns", "file:" + path});
  const auto& failure = std::get<TaskFailure>(outcome);
  EXPECT_EQ(failure.error, "Notify.Failed");
  EXPECT_NE(failure.cause.find("status 500"), std::string::npos);
  EXPECT_NE(failure.cause.find("it ended with 3"), std::string::npos);
  EXPECT_NE(failure.cause.find("no topic is given"), std::string::npos);
  EXPECT_FALSE(Read(path).empty());
}

TEST_F(NotifyExecutorTest, ATargetThatNobodyKnowsIsRefused) {
  EXPECT_NE(std::get<TaskFailure>(Start({"pigeon:home"})).cause.find("there is no target"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::task
