#include "pipeline/opensearch/opensearch_bulk.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "core/json.h"
#include "support/hasty_env.h"
#include "support/http_server.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;
using testing::Answer;
using testing::HastyEnv;
using testing::HttpServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;

// A fake cluster: stores the last body of every id, and answers each document as instructed.
class BulkTest : public ::testing::Test {
 protected:
  // The response to a document's nth attempt: a status and, from 300 on, an error.
  using Verdict = std::function<std::pair<int, std::string>(const std::string& id, int time)>;

  void Serve(Verdict verdict) {
    Serve([this, verdict](const HttpServerRequest& request) {
      const std::lock_guard lock(mutex_);
      std::string items;
      bool errors = false;
      std::istringstream lines(request.body);
      for (std::string action, body; std::getline(lines, action) && std::getline(lines, body);) {
        const Json json = ParseJson(action, "action").value();
        const std::string id = json["index"]["_id"];
        const auto [status, type] = verdict(id, ++times_[id]);
        if (status < 300) kept_[id] = body;
        errors |= status >= 300;
        items += (items.empty() ? "" : ",") + std::string(R"({"index":{"status":)") +
                 std::to_string(status);
        if (status >= 300) items += R"(,"error":{"type":")" + type + R"(","reason":"because"})";
        items += "}}";
      }
      return Answer(200, std::string(R"({"errors":)") + (errors ? "true" : "false") +
                             R"(,"items":[)" + items + "]}");
    });
  }

  void Serve(HttpServer::Handler handler) {
    server_.emplace(std::move(handler));
    client_ = std::make_unique<net::OpenSearchClient>(
        net::OpenSearchEndpoint{.base_url = "http://127.0.0.1:" + std::to_string(server_->port())},
        env_);
  }

  Result<std::vector<Refused>> Write(const Batch& batch, const Patience& patience = {}) {
    Fence fence;
    fence.origin = "books/0/";
    fence.since_ms = since_ms_;
    fence.rank = 3;
    return OpenSearchBulk(*client_, env_, pace_, "books", options_, fence).Write(batch, patience);
  }

  static Batch Documents(const std::vector<std::pair<std::string, std::string>>& documents) {
    Batch batch;
    for (const auto& [id, body] : documents) {
      batch.Add({.id = id, .routing = {}, .body = body, .position = "9", .defect = {}});
    }
    return batch;
  }

  // Every document conflicts with this version.
  void ServeConflictsWith(int64_t version) {
    Serve([version](const HttpServerRequest&) {
      return Answer(200, R"({"errors":true,"items":[{"index":{"status":409,"error":{"type":)"
                         R"("version_conflict_engine_exception","reason":"[a]: version conflict, )"
                         R"(current version [)" +
                             std::to_string(version) +
                             R"(] is higher than the one provided [1]"}}}]})");
    });
  }

  HastyEnv env_;
  int64_t since_ms_ = 0;
  OpenSearchBulkOptions options_;
  Pace pace_{env_};
  std::optional<HttpServer> server_;
  std::unique_ptr<net::OpenSearchClient> client_;
  std::mutex mutex_;
  std::map<std::string, std::string> kept_;
  std::map<std::string, int> times_;
};

std::pair<int, std::string> Fine() { return {201, ""}; }

TEST_F(BulkTest, OnlyRejectedDocumentsAreResent) {
  Serve([](const std::string& id, int time) {
    return id == "b" && time < 3 ? std::pair<int, std::string>(429, "rejected") : Fine();
  });
  const auto refused = Write(Documents({{"a", "{}"}, {"b", "{}"}, {"c", "{}"}}));
  ASSERT_TRUE(refused) << refused.error().ToString();
  EXPECT_TRUE(refused->empty());
  EXPECT_EQ(times_, (std::map<std::string, int>{{"a", 1}, {"b", 3}, {"c", 1}}));
  EXPECT_EQ(kept_.size(), 3U);
}

TEST_F(BulkTest, TheCallerIsToldWhyItWaits) {
  Serve([](const std::string&, int time) {
    return time < 3 ? std::pair<int, std::string>(429, "rejected") : Fine();
  });
  std::vector<std::string> waits;
  ASSERT_TRUE(Write(Documents({{"a", "{}"}}),
                    {.waits = [&](const Error& why) { waits.push_back(why.message); }}));
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_NE(waits[0].find("rejected: because"), std::string::npos) << waits[0];
}

TEST_F(BulkTest, PermanentlyRejectedDocumentIsRefusedWithItsReason) {
  Serve([](const std::string& id, int) {
    return id == "b" ? std::pair<int, std::string>(400, "mapper_parsing_exception") : Fine();
  });
  const auto refused = Write(Documents({{"a", "{}"}, {"b", "{}"}, {"c", "{}"}}));
  ASSERT_TRUE(refused) << refused.error().ToString();
  ASSERT_EQ(refused->size(), 1U);
  EXPECT_EQ((*refused)[0].index, 1U);
  EXPECT_EQ((*refused)[0].reason, "mapper_parsing_exception: because");
  EXPECT_EQ(times_["b"], 1);
}

TEST_F(BulkTest, AnIdThatIsTooLongIsRefusedAloneAndNotSent) {
  Serve([](const std::string&, int) { return Fine(); });
  const std::string longest(512, 'i');
  const auto refused =
      Write(Documents({{"a", "{}"}, {longest + "i", "{}"}, {longest, "{}"}, {"c", "{}"}}));
  ASSERT_TRUE(refused) << refused.error().ToString();
  ASSERT_EQ(refused->size(), 1U);
  EXPECT_EQ((*refused)[0].index, 1U);
  EXPECT_EQ((*refused)[0].reason, "its id has 513 bytes; the limit is 512");
  EXPECT_EQ(times_, (std::map<std::string, int>{{"a", 1}, {longest, 1}, {"c", 1}}));
}

TEST_F(BulkTest, DocumentThatLostAMappingRaceIsResent) {
  std::atomic<int> requests = 0;
  int races = 2;
  Serve([&](const HttpServerRequest&) {
    if (++requests > races) return Answer(200, R"({"errors":false})");
    return Answer(200, R"({"errors":true,"items":[{"index":{"status":400,"error":{"type":)"
                       R"("illegal_argument_exception","reason":"mapper [price] cannot be )"
                       R"(changed from type [float] to [long]"}}}]})");
  });
  auto refused = Write(Documents({{"a", "{}"}}));
  ASSERT_TRUE(refused) << refused.error().ToString();
  EXPECT_TRUE(refused->empty());
  EXPECT_EQ(requests, 3);
  // It was not a race after all.
  races = 1'000'000;
  refused = Write(Documents({{"a", "{}"}}));
  ASSERT_TRUE(refused) << refused.error().ToString();
  ASSERT_EQ(refused->size(), 1U);
  EXPECT_FALSE((*refused)[0].skipped);
}

TEST_F(BulkTest, NothingIsSentAfterTheDeadline) {
  Serve([](const std::string&, int) { return Fine(); });
  const auto refused = Write(Documents({{"a", "{}"}}), {.deadline = env_.MonoNow()});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(IsTransient(refused.error().code));
  EXPECT_TRUE(server_->requests().empty());
}

TEST_F(BulkTest, DocumentsOfALaterHolderStay) {
  since_ms_ = 1'000;
  const int64_t ours = (2 * since_ms_ << 20) + (3 << 8);
  Serve([](const std::string&, int) { return Fine(); });
  ASSERT_TRUE(Write(Documents({{"a", "{}"}})));
  EXPECT_NE(server_->requests()[0].body.find("\"version\":" + std::to_string(ours) + ","),
            std::string::npos)
      << server_->requests()[0].body;
  ServeConflictsWith(ours + (1 << 8));
  EXPECT_EQ(Write(Documents({{"a", "{}"}})).error().code, Code::kLeaseLost);
  // By the target's own users, and by a later migration.
  for (const int64_t version : {ours + 1, (2 * since_ms_ + 7) << 20}) {
    ServeConflictsWith(version);
    const auto refused = Write(Documents({{"a", "{}"}}));
    ASSERT_TRUE(refused) << refused.error().ToString();
    ASSERT_EQ(refused->size(), 1U);
    EXPECT_TRUE((*refused)[0].skipped);
  }
}

TEST_F(BulkTest, ResentDocumentDoesNotOverwriteALaterVersion) {
  Serve([](const std::string& id, int time) {
    return id == "a" && time == 1 ? std::pair<int, std::string>(503, "unavailable") : Fine();
  });
  ASSERT_TRUE(Write(Documents({{"a", R"({"v":1})"}, {"b", "{}"}, {"a", R"({"v":2})"}})));
  EXPECT_EQ(kept_["a"], R"({"v":2})");
}

TEST_F(BulkTest, ARequestThatIsTooLargeIsHalvedUntilItFits) {
  Serve([this](const HttpServerRequest& request) {
    if (request.body.size() > 150) return Answer(413, "");
    const std::lock_guard lock(mutex_);
    ++times_["taken"];
    return Answer(200, R"({"errors":false})");
  });
  std::vector<std::pair<std::string, std::string>> documents;
  for (int i = 0; i < 8; ++i) documents.emplace_back(std::to_string(i), R"({"text":"0123456789"})");
  documents.emplace_back("large", "{\"text\":\"" + std::string(500, 'x') + "\"}");
  const auto refused = Write(Documents(documents));
  ASSERT_TRUE(refused) << refused.error().ToString();
  ASSERT_EQ(refused->size(), 1U);
  EXPECT_EQ((*refused)[0].index, 8U);
  EXPECT_GE(times_["taken"], 2);
}

TEST_F(BulkTest, DocumentsAreResentAfterALostResponse) {
  std::atomic<int> requests = 0;
  Serve([&](const HttpServerRequest&) {
    return ++requests == 1 ? testing::CloseWithoutAnswer() : Answer(200, R"({"errors":false})");
  });
  ASSERT_TRUE(Write(Documents({{"a", "{}"}})));
  const auto sent = server_->requests();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].body, sent[1].body);
}

TEST_F(BulkTest, RetryAfterIsHonouredUpToAMinute) {
  std::atomic<int> requests = 0;
  std::string retry_after = "20";
  Serve([&](const HttpServerRequest&) {
    return ++requests % 2 == 1 ? Answer(429, "{}", {{"Retry-After", retry_after}})
                               : Answer(200, R"({"errors":false})");
  });
  ASSERT_TRUE(Write(Documents({{"a", "{}"}})));
  retry_after = "86400";
  ASSERT_TRUE(Write(Documents({{"a", "{}"}})));
  ASSERT_EQ(env_.pauses.size(), 2U);
  EXPECT_GE(env_.pauses[0], 20s);
  EXPECT_GE(env_.pauses[1], 60s);
  EXPECT_LT(env_.pauses[1], 70s);
}

// It would count as written.
TEST_F(BulkTest, ADocumentThatAPipelineDropsIsSkipped) {
  Serve([](const HttpServerRequest& request) {
    const bool asked = request.target.find("items.*.result") != std::string::npos;
    EXPECT_EQ(asked, request.target.find("pipeline=_none") == std::string::npos);
    return Answer(200, std::string(R"({"errors":false,"items":[{"index":{"status":201,)") +
                           R"("result":"created"}},{"index":{"status":200,"result":"noop"}}]})");
  });
  for (const char* pipeline : {"clean", ""}) {
    options_.ingest = pipeline;
    const auto refused = Write(Documents({{"a", "{}"}, {"b", "{}"}}));
    ASSERT_TRUE(refused) << refused.error().ToString();
    ASSERT_EQ(refused->size(), 1U);
    EXPECT_EQ(refused->front().index, 1U);
    EXPECT_TRUE(refused->front().skipped);
  }
  options_.ingest = "_none";
  EXPECT_TRUE(Write(Documents({{"a", "{}"}, {"b", "{}"}}))->empty());
}

TEST_F(BulkTest, PatienceLimitsRetries) {
  Serve([](const std::string&, int) { return std::pair<int, std::string>(429, "rejected"); });
  const auto refused = Write(Documents({{"a", "{}"}}), {.deadline = env_.MonoNow() + 10s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_NE(refused.error().message.find("rejected: because"), std::string::npos);
}

TEST_F(BulkTest, PermissionErrorIsNotRetried) {
  Serve([](const std::string&, int) {
    return std::pair<int, std::string>(403, "security_exception");
  });
  const auto refused = Write(Documents({{"a", "{}"}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kPermission);
  EXPECT_EQ(times_["a"], 1);
}

TEST_F(BulkTest, DocumentsWaitUntilAClosedIndexIsOpened) {
  const std::pair<int, std::string> closed(400, "index_closed_exception");
  Serve([&](const std::string&, int time) { return time < 4 ? closed : Fine(); });
  auto refused = Write(Documents({{"a", "{}"}, {"b", "{}"}}));
  ASSERT_TRUE(refused) << refused.error().ToString();
  EXPECT_TRUE(refused->empty());
  EXPECT_EQ(kept_.size(), 2U);
  Serve([&](const std::string&, int) { return closed; });
  refused = Write(Documents({{"a", "{}"}}), {.deadline = env_.MonoNow() + 10s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kReadOnly);
  EXPECT_NE(refused.error().hint.find("open it"), std::string::npos) << refused.error().hint;
}

TEST_F(BulkTest, DocumentWithoutAnIdGetsAStableIdFromItsPosition) {
  Serve([](const std::string&, int) { return Fine(); });
  const Batch batch = Documents({{"", "{}"}});
  ASSERT_TRUE(Write(batch));
  ASSERT_TRUE(Write(batch));
  ASSERT_EQ(times_.size(), 1U);
  EXPECT_EQ(times_.begin()->second, 2);
}

TEST_F(BulkTest, LineBreaksWithinADocumentDoNotEndIt) {
  Serve([](const std::string&, int) { return Fine(); });
  ASSERT_TRUE(Write(Documents({{"a\nb", "{\r\n \"x\": \"y\\nz\"\n}"}, {"c", "{}"}})));
  EXPECT_EQ(kept_["a\nb"], "{   \"x\": \"y\\nz\" }");
}

TEST_F(BulkTest, DeleteOfAMissingOrNewerDocumentSucceeds) {
  Serve([](const HttpServerRequest& request) {
    EXPECT_EQ(request.body,
              "{\"delete\":{\"_id\":\"a\",\"version\":8388608,"
              "\"version_type\":\"external_gte\"}}\n"
              "{\"delete\":{\"_id\":\"b\",\"routing\":\"r\",\"version\":8388608,"
              "\"version_type\":\"external_gte\"}}\n"
              "{\"index\":{\"_id\":\"b\",\"version\":9437184,"
              "\"version_type\":\"external_gte\"}}\n"
              "{\"n\":1}\n");
    return Answer(200, R"({"errors":true,"items":[{"delete":{"status":404}},
        {"delete":{"status":409,"error":{"type":"version_conflict_engine_exception"}}},
        {"index":{"status":409,"error":{"type":"version_conflict_engine_exception"}}}]})");
  });
  Batch batch;
  const auto add = [&](const char* id, const char* routing, bool deleted, int64_t version) {
    batch.Add({.id = id,
               .routing = routing,
               .body = "{\"n\":1}",
               .position = {},
               .defect = {},
               .deleted = deleted,
               .version = version});
  };
  add("a", "", true, 8);
  add("b", "r", true, 8);
  add("b", "", false, 9);
  const auto refused = Write(batch);
  ASSERT_TRUE(refused) << refused.error().ToString();
  ASSERT_EQ(refused->size(), 2U);
  for (const Refused& one : *refused) EXPECT_TRUE(one.skipped) << one.reason;
  EXPECT_EQ(server_->requests().size(), 1U);
}

}  // namespace
}  // namespace muster::pipeline
