#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "store/dynamodb/dynamodb_store.h"
#include "support/dynamodb_gate.h"
#include "support/dynamodb_server.h"
#include "support/fault_proxy.h"
#include "support/shared_server.h"

// A faulty network and a busy service: despite lost, late and rejected messages, the result of
// every call is correct. The general store contract is in tests/contract.

namespace muster::store {
namespace {

using namespace std::chrono_literals;
using testing::DynamoDbError;
using testing::DynamoDbGate;
using testing::DynamoDbServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;

constexpr DynamoDbLimits kImpatient{.request_timeout = 3s, .call_timeout = 3s};

Record NewRecord(const std::string& key) {
  return Record{.kind = "work", .queue = "q", .key = key};
}

ClaimRequest NewClaim(int limit = 1) {
  return {.kind = "work",
          .queue = "q",
          .limit = limit,
          .owner = "me",
          .claim_id = RealEnv().NewId(),
          .lease = 60s};
}

// The index partition of a query.
std::string ShardOf(const HttpServerRequest& request) {
  const size_t begin = request.body.find(R"(":due_in":)");
  return request.body.substr(begin, request.body.find('}', begin) - begin);
}

// A lagging index: every partition keeps returning its first response, with a current Date.
class IndexLeftBehind {
 public:
  HttpServerReply Show(DynamoDbGate& gate, const HttpServerRequest& query) {
    std::lock_guard lock(mutex_);
    const auto [shown, first] = shown_.try_emplace(ShardOf(query));
    if (first) {
      const std::string reply = gate.PassOn(query).bytes;
      shown->second = reply.substr(reply.find("\r\n\r\n") + 4);
    }
    return testing::Answer(200, shown->second);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> shown_;
};

class DynamoDbFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = DynamoDbServer::Unavailable(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    gate_ = std::make_unique<DynamoDbGate>(DynamoDbServer::Shared().port());
    space_ = "space_" + RealEnv().NewId();
    direct_ = Open(DynamoDbServer::Shared().port());
    store_ = Open(gate_->port());
  }

  std::unique_ptr<Store> Open(int port, const DynamoDbLimits& limits = {}) {
    const DynamoDbPlace place{.region = "local",
                              .table = testing::UniqueName("faults"),
                              .endpoint = DynamoDbServer::Endpoint(port),
                              .create = true};
    return OpenDynamoDbStore(place, space_, RealEnv(), limits).value();
  }

  // Through the gate.
  Result<Written> Put(const Record& record, Due due) { return Apply(Change::Put(record, due)); }
  Result<Written> Apply(const Change& change) {
    auto written = store_->Write({&change, 1});
    if (!written) return written.error();
    return written->front();
  }

  // Past the gate.
  Record Create(const std::string& key, Due due = Due::AtOnce()) {
    const Change change = Change::Put(NewRecord(key), due);
    EXPECT_TRUE(direct_->Write({&change, 1}).value().front().applied);
    return Stored(key);
  }
  Record Stored(const std::string& key) { return direct_->Get("work", key).value().value(); }
  bool Exists(const std::string& key) { return direct_->Get("work", key).value().has_value(); }
  void Touch(const std::string& key) {
    const Change change = Change::Put(Stored(key), Due::Unchanged());
    EXPECT_TRUE(direct_->Write({&change, 1}).value().front().applied);
  }

  std::unique_ptr<DynamoDbGate> gate_;
  std::string space_;
  std::unique_ptr<Store> direct_;
  std::unique_ptr<Store> store_;
};

TEST_F(DynamoDbFaults, CreateWithALostResponseIsRecognisedByItsNonce) {
  gate_->LoseAnswer("UpdateItem");
  const Written written = Put(NewRecord("a"), Due::Never()).value();
  EXPECT_TRUE(written.applied);
  EXPECT_EQ(Stored("a").version, written.version);
}

TEST_F(DynamoDbFaults, ReplaceWithALostResponseIsRecognisedByItsNonce) {
  Record record = Create("a");
  record.body = "1";
  gate_->LoseAnswer("UpdateItem");
  const Written written = Put(record, Due::Never()).value();
  EXPECT_TRUE(written.applied);
  EXPECT_EQ(written.version, record.version + 1);
  EXPECT_EQ(Stored("a").version, written.version);
}

TEST_F(DynamoDbFaults, LostRequestIsRetried) {
  gate_->LoseRequest("UpdateItem");
  EXPECT_TRUE(Put(NewRecord("a"), Due::Never()).value().applied);
  EXPECT_TRUE(Exists("a"));
}

TEST_F(DynamoDbFaults, ServerErrorAfterTheWriteIsHandledLikeALostResponse) {
  std::atomic<bool> failed = false;
  gate_->SetRule([&](const std::string& operation,
                     const HttpServerRequest& request) -> std::optional<HttpServerReply> {
    if (operation != "UpdateItem" || failed.exchange(true)) return std::nullopt;
    gate_->PassOn(request);
    return DynamoDbError(500, "InternalServerError", "oops");
  });
  const Written written = Put(NewRecord("a"), Due::Never()).value();
  EXPECT_TRUE(written.applied);
  EXPECT_EQ(Stored("a").version, written.version);
}

TEST_F(DynamoDbFaults, EarlierReplaceByAnotherWriterIsAConflictEvenIfInDoubt) {
  const Record record = Create("a");
  std::atomic<bool> lost = false;
  gate_->SetRule([&](const std::string& operation,
                     const HttpServerRequest&) -> std::optional<HttpServerReply> {
    if (operation != "UpdateItem" || lost.exchange(true)) return std::nullopt;
    Touch("a");
    return testing::CloseWithoutAnswer();
  });
  EXPECT_FALSE(Put(record, Due::Never()).value().applied);
}

TEST_F(DynamoDbFaults, ReplaceOverwrittenByOtherChangesHasAnUnknownOutcome) {
  const Record record = Create("a");
  gate_->LoseAnswer("UpdateItem", [&] { Touch("a"); });
  EXPECT_EQ(Put(record, Due::Never()).error().code, Code::kUnknownOutcome);
}

TEST_F(DynamoDbFaults, ClaimAfterAWriteDoesNotHideTheWrite) {
  const Record record = Create("a", Due::Never());
  gate_->LoseAnswer("UpdateItem",
                    [&] { EXPECT_EQ(direct_->Claim(NewClaim()).value().size(), 1u); });
  const Written written = Put(record, Due::AtOnce()).value();
  EXPECT_TRUE(written.applied);
  EXPECT_EQ(written.version, record.version + 1);
  EXPECT_EQ(Stored("a").epoch, 1);
}

TEST_F(DynamoDbFaults, DeleteWithALostResponseHasAnUnknownOutcome) {
  const Record record = Create("a");
  gate_->LoseAnswer("DeleteItem");
  EXPECT_EQ(Apply(Change::Delete(record)).error().code, Code::kUnknownOutcome);
  EXPECT_FALSE(Exists("a"));
  EXPECT_FALSE(Apply(Change::Delete(record)).value().applied);
}

TEST_F(DynamoDbFaults, ClaimWithALostResponseTakesTheRecordInOneEpoch) {
  Create("a");
  gate_->LoseAnswer("UpdateItem");
  const auto claimed = store_->Claim(NewClaim()).value();
  ASSERT_EQ(claimed.size(), 1u);
  EXPECT_EQ(claimed.front().epoch, 1);
  EXPECT_EQ(claimed.front(), Stored("a"));
}

TEST_F(DynamoDbFaults, TransactionWithALostResponseIsAppliedOnce) {
  for (const char* lost : {"answer", "request"}) {
    std::vector<Change> changes;
    for (const char* key : {"a", "b", "c"}) {
      changes.push_back(Change::Put(NewRecord(std::string(lost) + key), Due::Never()));
    }
    Create(std::string(lost) + "b");
    std::string(lost) == "answer" ? gate_->LoseAnswer("TransactWriteItems")
                                  : gate_->LoseRequest("TransactWriteItems");
    const auto written = store_->Write(changes).value();
    EXPECT_TRUE(written[0].applied);
    EXPECT_FALSE(written[1].applied);
    EXPECT_TRUE(written[2].applied);
    EXPECT_EQ(Stored(std::string(lost) + "a").version, written[0].version);
  }
}

TEST_F(DynamoDbFaults, AppliedTransactionIsNotReportedAsAConflict) {
  std::vector<Change> changes;
  for (const char* key : {"a", "b"}) {
    changes.push_back(Change::Put(NewRecord(key), Due::Never()));
  }
  gate_->LoseAnswer("TransactWriteItems");
  const auto written = store_->Write(changes).value();
  EXPECT_TRUE(written[0].applied);
  EXPECT_TRUE(written[1].applied);
  EXPECT_EQ(Stored("b").version, written[1].version);
}

TEST_F(DynamoDbFaults, BurstsOfThrottlingAndConflictsAreRetried) {
  for (const char* error :
       {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded",
        "TransactionConflictException", "TransactionInProgressException"}) {
    gate_->Refuse("UpdateItem", error, 4);
    EXPECT_TRUE(Put(NewRecord(error), Due::AtOnce()).value().applied) << error;
    gate_->Refuse("UpdateItem", error, 4);
    EXPECT_EQ(store_->Claim(NewClaim()).value().size(), 1u) << error;
    EXPECT_EQ(Stored(error).epoch, 1) << error;
    gate_->Refuse("Query", error, 4);
    EXPECT_TRUE(store_->Scan("work", "", "", 10)) << error;
  }
}

TEST_F(DynamoDbFaults, ConflictingTransactionIsRetried) {
  std::atomic<int> left = 3;
  gate_->SetRule([&](const std::string& operation,
                     const HttpServerRequest&) -> std::optional<HttpServerReply> {
    if (operation != "TransactWriteItems" || left-- <= 0) return std::nullopt;
    return testing::Answer(400, R"({"__type":"x#TransactionCanceledException","Message":"m",)"
                                R"("CancellationReasons":[{"Code":"TransactionConflict"},)"
                                R"({"Code":"None"}]})");
  });
  const std::vector<Change> changes{Change::Put(NewRecord("a"), Due::Never()),
                                    Change::Put(NewRecord("b"), Due::Never())};
  const auto written = store_->Write(changes).value();
  EXPECT_TRUE(written[0].applied && written[1].applied);
  EXPECT_LT(left, 1);
}

TEST_F(DynamoDbFaults, EndlessThrottlingIsUnavailableAndNothingIsApplied) {
  store_ = Open(gate_->port(), kImpatient);
  gate_->Refuse("UpdateItem", "ThrottlingException", 1'000'000);
  const int before = gate_->requests();
  const MonoTime start = RealEnv().MonoNow();
  const Error error = Put(NewRecord("a"), Due::Never()).error();
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_NE(error.message.find("throttled"), std::string::npos) << error.message;
  EXPECT_FALSE(error.hint.empty());
  EXPECT_LT(RealEnv().MonoNow() - start, 10s);
  EXPECT_LT(gate_->requests() - before, 60);  // with backoff
  EXPECT_FALSE(Exists("a"));
}

TEST_F(DynamoDbFaults, WriteThatFailsHalfwayHasAnUnknownOutcome) {
  store_ = Open(gate_->port(), kImpatient);
  std::vector<Change> changes;
  for (int i = 0; i < 150; ++i) {
    changes.push_back(Change::Put(NewRecord("k" + std::to_string(i)), Due::Never()));
  }
  std::atomic<int> transactions = 0;
  gate_->SetRule([&](const std::string& operation, const HttpServerRequest&) {
    const bool refuse = operation == "TransactWriteItems" && ++transactions > 1;
    return refuse ? std::optional(DynamoDbError(400, "ThrottlingException", "by the gate"))
                  : std::nullopt;
  });
  EXPECT_EQ(store_->Write(changes).error().code, Code::kUnknownOutcome);
  EXPECT_TRUE(Exists("k0"));
  EXPECT_FALSE(Exists("k149"));
}

TEST_F(DynamoDbFaults, UnknownClaimIsFoundByItsIdWhileTheIndexLags) {
  store_ = Open(gate_->port(), kImpatient);
  Create("a");
  Create("b");
  // All responses to updates are lost; and the index shows the old state.
  IndexLeftBehind index;
  std::atomic<bool> lose = true;
  gate_->SetRule([&](const std::string& operation,
                     const HttpServerRequest& request) -> std::optional<HttpServerReply> {
    if (operation == "UpdateItem" && lose) {
      gate_->PassOn(request);
      return testing::CloseWithoutAnswer();
    }
    if (operation != "Query") return std::nullopt;
    if (request.body.find(":claim") != std::string::npos) {
      return testing::Answer(200, R"({"Items":[],"Count":0,"ScannedCount":0})");
    }
    return index.Show(*gate_, request);
  });
  ClaimRequest request = NewClaim();
  const auto lost = store_->Claim(request);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kUnknownOutcome);
  lose = false;
  request.repeat = true;
  const auto again = store_->Claim(request).value();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again.front().epoch, 1);
  EXPECT_EQ(Stored("a").epoch + Stored("b").epoch, 1);
}

TEST_F(DynamoDbFaults, LaggingIndexProposesButDoesNotDecide) {
  Create("a");
  Create("b");
  IndexLeftBehind index;
  std::atomic<bool> behind = true;
  gate_->SetRule([&](const std::string& operation,
                     const HttpServerRequest& request) -> std::optional<HttpServerReply> {
    if (operation != "Query" || !behind) return std::nullopt;
    return index.Show(*gate_, request);
  });
  EXPECT_EQ(store_->Claim(NewClaim()).value().size(), 1u);
  EXPECT_EQ(store_->Claim(NewClaim()).value().size(), 1u);
  // The index still shows both as due, the second store does not know them, and there is one more
  // that it does not show.
  Create("c");
  EXPECT_TRUE(store_->Claim(NewClaim(10)).value().empty());
  auto second = Open(gate_->port());
  EXPECT_TRUE(second->Claim(NewClaim(10)).value().empty());
  EXPECT_EQ(Stored("a").epoch, 1);
  EXPECT_EQ(Stored("b").epoch, 1);
  behind = false;
  EXPECT_EQ(store_->Claim(NewClaim(10)).value().at(0).key, "c");
}

TEST_F(DynamoDbFaults, OldAttemptInTheIndexDoesNotShortenTheLease) {
  Record record = Create("a");
  std::atomic<bool> shown = false;
  gate_->SetRule([&](const std::string& operation,
                     const HttpServerRequest& request) -> std::optional<HttpServerReply> {
    if (operation != "Query") return std::nullopt;
    const HttpServerReply reply = gate_->PassOn(request);
    if (reply.bytes.find("\"a\"") != std::string::npos && !shown.exchange(true)) {
      record.attempt = 3;
      const Change change = Change::Put(record, Due::Unchanged());
      EXPECT_TRUE(direct_->Write({&change, 1}).value().front().applied);
    }
    return reply;
  });
  const WallTime before = direct_->Now().value();
  const Record claimed = store_->Claim(NewClaim()).value().at(0);
  EXPECT_TRUE(shown);
  EXPECT_EQ(claimed.attempt, 4);
  EXPECT_GT(*claimed.due, before + 8 * 60s - 5s);
}

TEST_F(DynamoDbFaults, FortyWorkersClaimingFortyRecordsRarelyCollide) {
  constexpr int kWorkers = 40;
  std::vector<Change> changes;
  std::vector<std::unique_ptr<Store>> stores;
  for (int i = 0; i < kWorkers; ++i) {
    changes.push_back(Change::Put(NewRecord(std::to_string(i)), Due::AtOnce()));
    stores.push_back(Open(gate_->port()));
  }
  ASSERT_TRUE(direct_->Write(changes));
  const int before = gate_->conflicts();
  std::mutex mutex;
  std::set<std::string> keys;
  std::vector<std::jthread> workers;
  for (auto& store : stores) {
    workers.emplace_back([&] {
      const auto claimed = store->Claim(NewClaim()).value();
      ASSERT_EQ(claimed.size(), 1u);
      std::lock_guard lock(mutex);
      keys.insert(claimed.front().key);
    });
  }
  workers.clear();
  EXPECT_EQ(keys.size(), static_cast<size_t>(kWorkers));
  EXPECT_LT(gate_->conflicts() - before, 2 * kWorkers);
}

TEST_F(DynamoDbFaults, ConnectionCutAnywhereLosesAndRepeatsNothing) {
  testing::FaultProxy proxy(DynamoDbServer::Shared().port());
  auto store = Open(proxy.port());
  int cuts = 0;
  for (const size_t bytes : {0U, 1U, 300U, 700U, 1'200U}) {
    for (const bool reply : {false, true}) {
      const std::string key = std::to_string(bytes) + (reply ? "r" : "q");
      Create(key);
      // One cut in the claim, one in the completion.
      const auto order = [&] { reply ? proxy.CutReplyAfter(bytes) : proxy.CutRequestAfter(bytes); };
      order();
      const auto claimed = store->Claim(NewClaim()).value();
      ASSERT_EQ(claimed.size(), 1u) << key;
      EXPECT_EQ(claimed.front().epoch, 1) << key;
      order();
      const Change done = Change::Put(claimed.front(), Due::Never());
      const auto written = store->Write({&done, 1});
      ASSERT_TRUE(written) << written.error().ToString();
      EXPECT_TRUE(written->front().applied) << key;
      EXPECT_EQ(Stored(key).version, claimed.front().version + 1) << key;
      proxy.Forget();
      cuts = proxy.cuts();
    }
  }
  EXPECT_GT(cuts, 10);
}

// Claims and completes until `stop`; a claim with an unknown outcome is repeated with its id.
void Work(Store& store, std::stop_token stop, std::mutex& mutex,
          std::map<std::string, int>& completed) {
  ClaimRequest request = NewClaim(3);
  while (!stop.stop_requested()) {
    const auto claimed = store.Claim(request);
    if (!claimed) {
      request.repeat = request.repeat || claimed.error().code == Code::kUnknownOutcome;
      continue;
    }
    request = NewClaim(3);
    for (const Record& record : *claimed) {
      const Change done = Change::Put(record, Due::Never());
      while (!stop.stop_requested()) {
        const auto written = store.Write({&done, 1});
        const auto stored = store.Get("work", record.key);
        if (!stored || !*stored) continue;
        // Done by this write, or by one with an unknown outcome.
        if ((written && written->front().applied) || !(*stored)->due) {
          std::lock_guard lock(mutex);
          ++completed[record.key];
          break;
        }
      }
    }
  }
}

TEST(DynamoDbRestart, ServerKilledDuringAClaimLosesNothingAcknowledged) {
  if (const std::string reason = DynamoDbServer::Unavailable(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  constexpr int kRecords = 150;
  DynamoDbServer server({.durable = true});  // its own: it is killed
  const DynamoDbPlace place{
      .region = "local", .table = "restart", .endpoint = server.Endpoint(), .create = true};
  auto store = OpenDynamoDbStore(place, "main", RealEnv(), DynamoDbLimits{}).value();
  std::vector<Change> changes;
  for (int i = 0; i < kRecords; ++i) {
    changes.push_back(Change::Put(NewRecord(std::to_string(i)), Due::AtOnce()));
  }
  ASSERT_TRUE(store->Write(changes));
  std::mutex mutex;
  std::map<std::string, int> completed;
  const auto count = [&] {
    std::lock_guard lock(mutex);
    return static_cast<int>(completed.size());
  };
  const auto await = [&](int wanted) {
    const MonoTime end = RealEnv().MonoNow() + 100s;
    while (count() < wanted && RealEnv().MonoNow() < end) RealEnv().Sleep(5ms, {});
  };
  std::vector<std::jthread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&](std::stop_token stop) { Work(*store, stop, mutex, completed); });
  }
  for (const int progress : {kRecords / 5, kRecords / 2}) {
    await(progress);
    server.Kill();
    server.Start();
  }
  await(kRecords);
  for (auto& worker : workers) worker.request_stop();
  workers.clear();
  ASSERT_EQ(completed.size(), static_cast<size_t>(kRecords));
  for (int i = 0; i < kRecords; ++i) {
    const Record record = store->Get("work", std::to_string(i)).value().value();
    EXPECT_EQ(record.epoch, 1) << i;
    EXPECT_FALSE(record.due) << i;
    EXPECT_EQ(completed[record.key], 1) << i;
  }
}

TEST(DynamoDbRestart, UnresponsiveServerTimesOut) {
  if (const std::string reason = DynamoDbServer::Unavailable(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  DynamoDbServer server;  // its own: it is paused
  const DynamoDbPlace place{
      .region = "local", .table = "paused", .endpoint = server.Endpoint(), .create = true};
  // A fresh server is slow to create the first table.
  ASSERT_TRUE(OpenDynamoDbStore(place, "main", RealEnv(), {.call_timeout = 60s}));
  auto store = OpenDynamoDbStore(place, "main", RealEnv(), kImpatient).value();
  server.Pause();
  const MonoTime start = RealEnv().MonoNow();
  // It may answer a few more: a signal is not handled at once.
  std::optional<Code> code;
  for (int i = 0; i < 1'000 && !code; ++i) {
    const Change change = Change::Put(NewRecord(std::to_string(i)), Due::Never());
    if (const auto written = store->Write({&change, 1}); !written) code = written.error().code;
  }
  EXPECT_EQ(code, Code::kUnknownOutcome);
  EXPECT_EQ(store->Get("work", "a").error().code, Code::kUnavailable);
  EXPECT_LT(RealEnv().MonoNow() - start, 20s);
  server.Resume();
  EXPECT_TRUE(store->Get("work", "a"));
}

}  // namespace
}  // namespace muster::store
