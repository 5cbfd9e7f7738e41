#include "store/dynamodb/dynamodb_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "core/json.h"
#include "support/dynamodb_gate.h"
#include "support/dynamodb_server.h"
#include "support/shared_server.h"

// DynamoDB specifics: tables and keys, pages of a megabyte, transactions of a hundred, an index.
// The general store contract is in tests/contract.

namespace muster::store {
namespace {

using namespace std::chrono_literals;
using testing::DynamoDbServer;

Record NewRecord(const std::string& key, const std::string& body = "{}") {
  return Record{.kind = "work", .queue = "q", .key = key, .body = body};
}

ClaimRequest NewClaim(int limit = 1) {
  return {.kind = "work",
          .queue = "q",
          .limit = limit,
          .owner = "me",
          .claim_id = RealEnv().NewId(),
          .lease = 60s};
}

class DynamoDbStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = DynamoDbServer::Unavailable(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    place_ = {.region = "local",
              .table = testing::UniqueName("table." + RealEnv().NewId()),
              .endpoint = DynamoDbServer::Shared().Endpoint(),
              .create = true};
  }

  std::unique_ptr<Store> Open(const std::string& space = "main") {
    auto store = OpenDynamoDbStore(place_, space, RealEnv(), DynamoDbLimits{});
    EXPECT_TRUE(store) << store.error().ToString();
    return store ? *std::move(store) : nullptr;
  }

  Error OpenError() {
    auto store = OpenDynamoDbStore(place_, "main", RealEnv(), DynamoDbLimits{});
    EXPECT_FALSE(store);
    return store ? Error{} : store.error();
  }

  Json Call(const std::string& operation, Json body) {
    body["TableName"] = place_.table;
    return Json::parse(DynamoDbServer::Shared().Call(operation, body.dump()));
  }

  DynamoDbPlace place_;
};

TEST_F(DynamoDbStoreTest, ATableIsCreatedOnRequestOnly) {
  place_.create = false;
  const Error error = OpenError();
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_NE(error.hint.find("?create=true"), std::string::npos) << error.hint;
  place_.create = true;
  ASSERT_TRUE(Open());
  const Json table = Call("DescribeTable", {})["Table"];
  EXPECT_EQ(table["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST");
  place_.create = false;
  EXPECT_TRUE(Open());
}

TEST_F(DynamoDbStoreTest, NewTableIsAwaitedAndHasPointInTimeRecovery) {
  testing::DynamoDbGate gate(DynamoDbServer::Shared().port());
  std::atomic<int> describes = 0;
  std::atomic<int> switches = 0;
  gate.SetRule(
      [&](const std::string& operation,
          const testing::HttpServerRequest& request) -> std::optional<testing::HttpServerReply> {
        if (operation == "DescribeTable") {
          testing::HttpServerReply reply = gate.PassOn(request);
          const size_t status = reply.bytes.find(R"("TableStatus":"ACTIVE")");
          if (status != std::string::npos && ++describes < 3)
            reply.bytes.replace(status + 15, 6, "BUSY..");
          return reply;
        }
        if (operation != "UpdateContinuousBackups") return std::nullopt;
        EXPECT_NE(request.body.find(R"("PointInTimeRecoveryEnabled":true)"), std::string::npos);
        if (++switches < 2) {
          return testing::DynamoDbError(400, "ContinuousBackupsUnavailableException", "not yet");
        }
        return testing::Answer(200, "{}");
      });
  place_.endpoint = DynamoDbServer::Endpoint(gate.port());
  EXPECT_TRUE(Open());
  EXPECT_EQ(describes, 3);
  EXPECT_EQ(switches, 2);
  EXPECT_TRUE(Open());
  EXPECT_EQ(switches, 2);
}

TEST_F(DynamoDbStoreTest, TableCanBeCreatedConcurrently) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(Open()); });
  }
}

TEST_F(DynamoDbStoreTest, ATableWithOtherKeysIsRefusedAndLeftAlone) {
  Call("CreateTable",
       {{"BillingMode", "PAY_PER_REQUEST"},
        {"AttributeDefinitions", Json::array({{{"AttributeName", "id"}, {"AttributeType", "S"}}})},
        {"KeySchema", Json::array({{{"AttributeName", "id"}, {"KeyType", "HASH"}}})}});
  const Error error = OpenError();
  EXPECT_EQ(error.code, Code::kIncompatible);
  EXPECT_NE(error.message.find("id S HASH"), std::string::npos) << error.message;
  EXPECT_FALSE(error.hint.empty());
  EXPECT_EQ(Call("Scan", {})["Count"], 0);
}

TEST_F(DynamoDbStoreTest, ATableWithoutTheIndexIsRefused) {
  Call("CreateTable",
       {{"BillingMode", "PAY_PER_REQUEST"},
        {"AttributeDefinitions", Json::array({{{"AttributeName", "pk"}, {"AttributeType", "S"}},
                                              {{"AttributeName", "sk"}, {"AttributeType", "S"}}})},
        {"KeySchema", Json::array({{{"AttributeName", "pk"}, {"KeyType", "HASH"}},
                                   {{"AttributeName", "sk"}, {"KeyType", "RANGE"}}})}});
  const Error error = OpenError();
  EXPECT_EQ(error.code, Code::kIncompatible);
  EXPECT_NE(error.message.find("index 'due'"), std::string::npos) << error.message;
}

TEST_F(DynamoDbStoreTest, ANewerSchemaIsRefused) {
  ASSERT_TRUE(Open());
  Call("PutItem",
       {{"Item",
         {{"pk", {{"S", "main"}}}, {"sk", {{"S", "schema"}}}, {"version", {{"N", "999"}}}}}});
  const Error error = OpenError();
  EXPECT_EQ(error.code, Code::kIncompatible);
  EXPECT_NE(error.message.find("999"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("up to 1"), std::string::npos) << error.message;
  EXPECT_TRUE(Open("other"));
}

TEST_F(DynamoDbStoreTest, ASchemaItemWithoutAVersionIsCorrupt) {
  ASSERT_TRUE(Open());
  Call("PutItem", {{"Item", {{"pk", {{"S", "main"}}}, {"sk", {{"S", "schema"}}}}}});
  EXPECT_EQ(OpenError().code, Code::kCorrupt);
}

TEST_F(DynamoDbStoreTest, ItemThatIsNotARecordIsCorrupt) {
  auto store = Open();
  Call("PutItem", {{"Item", {{"pk", {{"S", "main/work"}}}, {"sk", {{"S", "alien"}}}}}});
  EXPECT_EQ(store->Get("work", "alien").error().code, Code::kCorrupt);
}

TEST_F(DynamoDbStoreTest, ScansAndWritesMayExceedTheLimitsOfOneRequest) {
  auto store = Open();
  const std::string body = "\"" + std::string(300'000, 'x') + "\"";
  std::vector<Change> changes;
  for (int i = 0; i < 20; ++i) {
    changes.push_back(Change::Put(NewRecord("k" + std::to_string(100 + i), body), Due::Never()));
  }
  const auto written = store->Write(changes).value();  // 6 MB; a transaction takes 4
  EXPECT_TRUE(std::all_of(written.begin(), written.end(), [](auto& w) { return w.applied; }));
  const auto page = store->Scan("work", "k", "k104", 12).value();  // 3.6 MB; a page is 1
  ASSERT_EQ(page.size(), 12u);
  EXPECT_EQ(page.front().key, "k105");
  EXPECT_EQ(page.back().key, "k116");
  EXPECT_EQ(page.back().body, body);
}

TEST_F(DynamoDbStoreTest, KeysAreInByteOrder) {
  auto store = Open();
  // In UTF-16 the last two would swap.
  const std::vector<std::string> keys{"Z", "a", "é", "日", "\uFF5E", "🚀"};
  std::vector<Change> changes;
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    changes.push_back(Change::Put(NewRecord(*key), Due::Never()));
  }
  ASSERT_TRUE(store->Write(changes));
  std::vector<std::string> scanned;
  const auto page = store->Scan("work", "", "", 10).value();
  for (const Record& record : page) {
    scanned.push_back(record.key);
  }
  EXPECT_EQ(scanned, keys);
  EXPECT_TRUE(store->Scan("work", "é", "é", 10).value().empty());
}

TEST_F(DynamoDbStoreTest, WriteOfManyReportsConflictsSeparately) {
  auto store = Open();
  std::vector<Change> changes;
  for (int i = 0; i < 250; ++i) {
    changes.push_back(Change::Put(NewRecord(std::to_string(i)), Due::Never()));
  }
  ASSERT_TRUE(store->Write(std::span(changes).first(120)));
  const auto written = store->Write(changes).value();
  for (size_t i = 0; i < written.size(); ++i) EXPECT_EQ(written[i].applied, i >= 120) << i;
}

TEST_F(DynamoDbStoreTest, IndexHasOnlyDueRecordsAndIsSharded) {
  auto store = Open();
  std::vector<Change> changes;
  for (int i = 0; i < 60; ++i) {
    changes.push_back(
        Change::Put(NewRecord(std::to_string(i)), i < 40 ? Due::AtOnce() : Due::Never()));
  }
  ASSERT_TRUE(store->Write(changes));
  const auto indexed = [&] { return Call("Scan", {{"IndexName", "due"}}); };
  const Json before = indexed();
  EXPECT_EQ(before["Count"], 40);
  std::set<std::string> partitions;
  for (const Json& item : before["Items"]) partitions.insert(item["due_in"]["S"]);
  EXPECT_GT(partitions.size(), 2u);

  std::vector<Change> completed;
  const auto claimed = store->Claim(NewClaim(40)).value();
  for (const Record& record : claimed) {
    completed.push_back(Change::Put(record, Due::Never()));
  }
  ASSERT_EQ(completed.size(), 40u);
  ASSERT_TRUE(store->Write(completed));
  EXPECT_EQ(indexed()["Count"], 0);
}

TEST_F(DynamoDbStoreTest, TheLargestRecordFitsIntoAnItem) {
  auto store = Open();
  Record record;
  record.kind = std::string(kMaxNameBytes, '/');
  record.queue = std::string(kMaxNameBytes, '%');
  record.key = std::string(kMaxKeyBytes, 'k');
  record.owner = std::string(kMaxNameBytes, 'o');
  record.body = "\"" + std::string(kMaxBodyBytes - 2, '/') + "\"";
  const Change change = Change::Put(record, Due::AtOnce());
  ASSERT_TRUE(store->Write({&change, 1}).value().front().applied);
  ClaimRequest request = NewClaim();
  request.kind = record.kind;
  request.queue = record.queue;
  request.owner = record.owner;
  request.claim_id = std::string(kMaxNameBytes, 'c');
  const auto claimed = store->Claim(request).value();
  ASSERT_EQ(claimed.size(), 1u);
  EXPECT_EQ(claimed.front().body, record.body);
}

TEST_F(DynamoDbStoreTest, RepeatedClaimWorksOnAnotherStore) {
  auto store = Open();
  std::vector<Change> changes;
  for (const char* key : {"a", "b", "c"}) {
    changes.push_back(Change::Put(NewRecord(key), Due::AtOnce()));
  }
  ASSERT_TRUE(store->Write(changes));
  ClaimRequest request = NewClaim(2);
  ASSERT_EQ(store->Claim(request).value().size(), 2u);
  request.repeat = true;
  EXPECT_EQ(Open()->Claim(request).value().size(), 2u);
}

TEST_F(DynamoDbStoreTest, WaitPollsLessAndLessOften) {
  auto store = Open();
  const MonoTime start = RealEnv().MonoNow();
  for (int i = 0; i < 4; ++i) store->Wait("work", 1h, {});
  // At least half of 100, 200, 400 and 800 ms; and this process's own writes are seen at once.
  EXPECT_GE(RealEnv().MonoNow() - start, 750ms);
  std::jthread writer([&] {
    const Change change = Change::Put(NewRecord("a"), Due::AtOnce());
    EXPECT_TRUE(store->Write({&change, 1}));
  });
  store->Wait("work", 1h, {});
  EXPECT_LT(RealEnv().MonoNow() - start, 20s);
}

}  // namespace
}  // namespace muster::store
