#include "task/notify/notify_executor.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>

#include "core/json.h"
#include "support/http_server.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"
#include "task/notify/notification.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

// Stands in for AWS: records its calls.
class RecordingAws : public states::TaskExecutor {
 public:
  bool Runs(std::string_view) const override { return true; }
  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext&) override {
    const std::lock_guard lock(mutex_);
    calls.push_back(call);
    return states::TaskSuccess{};
  }
  states::TaskOutcome Poll(const states::TaskCall&, const Json&, states::TaskContext&) override {
    return states::TaskSuccess{};
  }
  void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}

  std::vector<states::TaskCall> calls;

 private:
  std::mutex mutex_;
};

class NotifyExecutorTest : public ::testing::Test {
 protected:
  states::TaskOutcome Start(const Json& targets, const std::string& dedupe = "m-1/600/User") {
    return notifier_->Start({.resource = "muster:notify",
                             .input = Json{{"targets", targets},
                                           {"subject", "it failed"},
                                           {"message", {{"rank", 600}}},
                                           {"dedupe", dedupe},
                                           {"topic", "arn:aws:sns:us-east-1:42:failures"},
                                           {"migration", "m-1"}},
                             .credentials = nullptr,
                             .token = "t",
                             .execution = "run",
                             .state = "Tell"},
                            context_);
  }
  // Sends notifications, and waits until all are delivered.
  void Succeed(const Json& targets, const std::string& dedupe = "m-1/600/User") {
    const auto outcome = Start(targets, dedupe);
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    ASSERT_EQ(failure, nullptr) << failure->cause;
    for (const Letter& letter : Letters()) EXPECT_TRUE(letter.delivered) << letter.error;
  }
  std::vector<Letter> Letters() { return *notifier_->Settle("m-1", std::chrono::minutes(1)); }
  std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // As another process would.
  void Renew() {
    notifier_.reset();
    notifier_ = MakeNotifyExecutor(aws_, RealEnv(), "sqlite:" + folder_.path() + "/store.db");
  }

  testing::TemporaryFolder folder_;
  RecordingAws aws_;
  std::unique_ptr<Notifier> notifier_ =
      MakeNotifyExecutor(aws_, RealEnv(), "sqlite:" + folder_.path() + "/store.db");
  TestContext context_;
};

TEST_F(NotifyExecutorTest, UnreadableLetterIsSetAsideAndOthersAreDelivered) {
  const std::string path = folder_.At("news.jsonl");
  Succeed({"file:" + path});
  const auto store = *store::OpenStore("sqlite:" + folder_.path() + "/store.db", RealEnv());
  const store::Record good = store->Scan("notification", "", "", 1)->front();
  int damaged = 0;
  for (const char* body :
       {"[]", "5", "{}", R"({"target":[]})", R"({"target":"file:x","topic":5})"}) {
    store::Record record{.kind = good.kind,
                         .queue = good.queue,
                         .key = good.key + "." + std::to_string(++damaged),
                         .body = body};
    ASSERT_TRUE(store->Write({{store::Change::Put(record, store::Due::AtOnce())}}));
    Renew();
    ASSERT_TRUE(notifier_->DeliverFor("m-1"));
    const std::vector<Letter> letters = Letters();
    ASSERT_EQ(letters.size(), static_cast<size_t>(damaged) + 1);
    EXPECT_TRUE(letters.front().delivered);
    EXPECT_NE(letters.back().error.find(record.key), std::string::npos) << letters.back().error;
  }
}

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

TEST_F(NotifyExecutorTest, PartialLineOfACrashDoesNotCount) {
  const std::string path = folder_.Write("news.jsonl", R"({"dedupe":"m-1/600/User","subject":"it)");
  Succeed({"file:" + path});
  EXPECT_EQ(Read(path), R"({"dedupe":"m-1/600/User","subject":"it)"
                        "\n"
                        R"({"dedupe":"m-1/600/User","subject":"it failed","message":{"rank":600}})"
                        "\n");
}

TEST_F(NotifyExecutorTest, FullDiskTearsNoLine) {
  const std::string path = folder_.Write("news.jsonl", "");
  const Notification news{.target = "file:" + path,
                          .subject = std::string(1000, 'x'),
                          .message = Json::object(),
                          .dedupe = "key",
                          .topic = {}};
  {
    const testing::SmallDisk disk(500);
    const Status refused = Deliver(news, aws_, RealEnv(), {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kFull);
  }
  EXPECT_EQ(Read(path), "");
  ASSERT_TRUE(Deliver(news, aws_, RealEnv(), {}));
  EXPECT_EQ(Read(path), news.Line() + "\n");
}

TEST_F(NotifyExecutorTest, WebhookReceivesTheKeyOnce) {
  const testing::HttpServer server([](const auto&) { return testing::Answer(204, ""); });
  Succeed({server.Url("/hook")});
  Renew();
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
  Succeed({"sns"});
  Succeed({"arn:aws:sns:us-east-1:42:others"});
  ASSERT_EQ(aws_.calls.size(), 2u);
  EXPECT_EQ(aws_.calls[0].resource, "arn:aws:states:::sns:publish");
  EXPECT_EQ(aws_.calls[0].input["TopicArn"], "arn:aws:sns:us-east-1:42:failures");
  EXPECT_EQ(aws_.calls[0].input["Message"], (Json{{"rank", 600}}));
  EXPECT_EQ(aws_.calls[0].input["MessageAttributes"]["dedupe"]["StringValue"], "m-1/600/User");
  EXPECT_EQ(aws_.calls[1].input["TopicArn"], "arn:aws:sns:us-east-1:42:others");
}

TEST_F(NotifyExecutorTest, FailedDeliveryIsRetriedWithoutDelayingOthers) {
  std::atomic<int> calls = 0;
  const testing::HttpServer server(
      [&](const auto&) { return testing::Answer(++calls == 1 ? 500 : 204, ""); });
  const std::string path = folder_.At("news.jsonl");
  ASSERT_TRUE(std::holds_alternative<states::TaskSuccess>(
      Start({server.Url("/hook"), "command:exit 3", "file:" + path})));
  std::map<std::string, std::string> errors;
  for (const Letter& letter : Letters()) errors[letter.news.target] = letter.error;
  EXPECT_NE(errors[server.Url("/hook")].find("status 500"), std::string::npos);
  EXPECT_NE(errors["command:exit 3"].find("exit code 3"), std::string::npos);
  EXPECT_EQ(errors["file:" + path], "");
  EXPECT_FALSE(Read(path).empty());
  while (calls < 2) std::this_thread::yield();
}

TEST_F(NotifyExecutorTest, HangingDeliveryIsLeftToTheNextProcess) {
  std::atomic<bool> hangs = true;
  const testing::HttpServer server(
      [&](const auto&) { return hangs ? testing::NeverAnswer() : testing::Answer(204, ""); });
  const std::string path = folder_.At("news.jsonl");
  ASSERT_TRUE(
      std::holds_alternative<states::TaskSuccess>(Start({server.Url("/hook"), "file:" + path})));
  const auto delivered = [&] {
    const auto letters = *notifier_->Settle("m-1", std::chrono::milliseconds(1));
    return std::count_if(letters.begin(), letters.end(),
                         [](const Letter& letter) { return letter.delivered; });
  };
  while (server.requests().empty() || delivered() == 0) std::this_thread::yield();
  EXPECT_EQ(delivered(), 1);
  hangs = false;
  Renew();
  ASSERT_TRUE(notifier_->DeliverFor("m-1"));
  for (const Letter& letter : Letters()) EXPECT_TRUE(letter.delivered) << letter.error;
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(NotifyExecutorTest, PipeWithoutAReaderFails) {
  const std::string path = folder_.At("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  ASSERT_TRUE(std::holds_alternative<states::TaskSuccess>(Start({"file:" + path})));
  EXPECT_NE(Letters().at(0).error.find("No such device or address"), std::string::npos);
}

TEST_F(NotifyExecutorTest, AnUnknownTargetIsRefused) {
  EXPECT_NE(std::get<states::TaskFailure>(Start({"pigeon:home"}))
                .cause.find("unknown notification target"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::task
