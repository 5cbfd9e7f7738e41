#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "core/json.h"
#include "muster/store.h"
#include "support/await.h"
#include "support/fault_proxy.h"
#include "support/http_relay.h"
#include "support/opensearch_server.h"
#include "support/shared_server.h"

// OpenSearch specifics: lagging searches, overloaded nodes, lost responses, killed servers. The
// general store contract is in tests/contract.

namespace muster::store {
namespace {

using namespace std::chrono_literals;
using testing::Answer;
using testing::CloseWithoutAnswer;
using testing::FaultProxy;
using testing::HttpRelay;
using testing::HttpServerReply;
using testing::HttpServerRequest;
using testing::OpenSearchServer;

bool Asks(const HttpServerRequest& request, const char* what) {
  return request.target.find(what) != std::string::npos;
}

HttpServerReply Busy(int status) {
  return Answer(status, R"({"error":{"type":"rejected_execution_exception","reason":"full"}})");
}

class OpenSearchStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = OpenSearchServer::Unavailable();
    if (!reason.empty()) GTEST_SKIP() << "OpenSearch is not available: " << reason;
    space_ = testing::UniqueName(RealEnv().NewId().substr(0, 12));
  }

  static OpenSearchServer& Server() { return OpenSearchServer::Shared(); }

  std::string UrlOf(int port) const {
    return "opensearch+http://127.0.0.1:" + std::to_string(port) + "?namespace=" + space_;
  }

  std::unique_ptr<Store> Open(int port) const {
    auto store = OpenStore(UrlOf(port), RealEnv());
    if (!store) throw std::runtime_error(store.error().ToString());
    return *std::move(store);
  }
  std::unique_ptr<Store> Open() const { return Open(Server().port()); }

  std::string Index() const { return "/" + space_ + "_records-000001"; }

  static Record NewRecord(const std::string& key) {
    return {.kind = "work", .queue = "q", .key = key};
  }

  static ClaimRequest NewClaim(int limit = 1) {
    return {
        .kind = "work", .queue = "q", .limit = limit, .owner = "me", .claim_id = RealEnv().NewId()};
  }

  static Result<std::vector<Written>> Put(Store& store, Record record, Due due = Due::AtOnce()) {
    const Change change = Change::Put(std::move(record), due);
    return store.Write({&change, 1});
  }

  static void Create(Store& store, const std::string& key) {
    const auto written = Put(store, NewRecord(key));
    ASSERT_TRUE(written) << written.error().ToString();
    ASSERT_TRUE(written->front().applied);
  }

  std::string space_;
};

TEST_F(OpenSearchStoreTest, InterruptedWriteIsUnknownAndNotApplied) {
  FaultProxy proxy(Server().port());
  const auto store = Open(proxy.port());
  proxy.CutRequestAfter(0);
  const auto written = Put(*store, NewRecord("a"));
  ASSERT_EQ(proxy.cuts(), 1);
  EXPECT_EQ(written.error().code, Code::kUnknownOutcome);
  EXPECT_FALSE(store->Get("work", "a").value());
}

TEST_F(OpenSearchStoreTest, WriteWithALostResponseIsUnknownAndApplied) {
  for (const size_t bytes : {0, 100}) {
    FaultProxy proxy(Server().port());
    const auto store = Open(proxy.port());
    const std::string key = std::to_string(bytes);
    proxy.CutReplyAfter(bytes);
    const auto written = Put(*store, NewRecord(key));
    ASSERT_EQ(proxy.cuts(), 1);
    EXPECT_EQ(written.error().code, Code::kUnknownOutcome);
    EXPECT_TRUE(store->Get("work", key).value());
  }
}

TEST_F(OpenSearchStoreTest, ReadWithALostResponseIsRetried) {
  FaultProxy proxy(Server().port());
  const auto store = Open(proxy.port());
  Create(*store, "a");
  proxy.CutReplyAfter(0);
  EXPECT_TRUE(store->Get("work", "a").value());
  EXPECT_EQ(proxy.cuts(), 1);
}

TEST_F(OpenSearchStoreTest, UnreachableClusterIsUnavailable) {
  FaultProxy proxy(Server().port());
  const auto store = Open(proxy.port());
  proxy.Refuse(true);
  proxy.CutAll();
  const auto written = Put(*store, NewRecord("a"));
  ASSERT_FALSE(written);
  EXPECT_TRUE(IsTransient(written.error().code)) << written.error().ToString();
  EXPECT_EQ(store->Get("work", "a").error().code, Code::kUnavailable);
  EXPECT_EQ(store->Claim(NewClaim()).error().code, Code::kUnavailable);
}

TEST_F(OpenSearchStoreTest, ClaimWithALostResponseIsFoundByItsId) {
  std::atomic<bool> lose = false;
  HttpRelay relay(Server().port(), {},
                  [&](const HttpServerRequest& request,
                      const net::HttpResponse&) -> std::optional<HttpServerReply> {
                    if (lose && Asks(request, "_bulk")) return CloseWithoutAnswer();
                    return std::nullopt;
                  });
  const auto store = Open(relay.port());
  for (const char* key : {"a", "b", "c"}) Create(*store, key);
  ClaimRequest claim = NewClaim(2);
  lose = true;
  EXPECT_EQ(store->Claim(claim).error().code, Code::kUnknownOutcome);
  lose = false;
  claim.repeat = true;
  const auto again = store->Claim(claim).value();
  ASSERT_EQ(again.size(), 2u);
  for (const Record& record : again) EXPECT_EQ(record.epoch, 1);
  EXPECT_EQ(store->Claim(NewClaim(10)).value().size(), 1u);
}

TEST_F(OpenSearchStoreTest, LostClaimIsMadeWhenRepeated) {
  std::atomic<bool> lose = false;
  HttpRelay relay(Server().port(),
                  [&](const HttpServerRequest& request) -> std::optional<HttpServerReply> {
                    if (lose && Asks(request, "_bulk")) return CloseWithoutAnswer();
                    return std::nullopt;
                  });
  const auto store = Open(relay.port());
  Create(*store, "a");
  ClaimRequest claim = NewClaim();
  lose = true;
  EXPECT_EQ(store->Claim(claim).error().code, Code::kUnknownOutcome);
  lose = false;
  claim.repeat = true;
  EXPECT_EQ(store->Claim(claim).value().at(0).epoch, 1);
}

TEST_F(OpenSearchStoreTest, BurstsOfRefusalsAreRetried) {
  for (const int status : {429, 503}) {
    std::atomic<int> refusals = 0;
    HttpRelay relay(Server().port(),
                    [&](const HttpServerRequest&) -> std::optional<HttpServerReply> {
                      if (refusals > 0 && refusals-- > 0) return Busy(status);
                      return std::nullopt;
                    });
    const auto store = Open(relay.port());
    const std::string key = std::to_string(status);
    refusals = 3;
    Create(*store, key);
    refusals = 3;
    EXPECT_TRUE(store->Get("work", key).value());
    refusals = 3;
    EXPECT_EQ(store->Claim(NewClaim()).value().size(), 1u);
  }
}

TEST_F(OpenSearchStoreTest, EndlessRefusalsApplyNothing) {
  std::atomic<bool> busy = false;
  HttpRelay relay(Server().port(), [&](const HttpServerRequest&) -> std::optional<HttpServerReply> {
    if (busy) return Busy(429);
    return std::nullopt;
  });
  const auto store = Open(relay.port());
  Create(*store, "a");
  busy = true;
  EXPECT_EQ(Put(*store, NewRecord("b")).error().code, Code::kUnavailable);
  EXPECT_EQ(store->Claim(NewClaim()).error().code, Code::kUnavailable);
  busy = false;
  EXPECT_FALSE(store->Get("work", "b").value());
  EXPECT_EQ(store->Claim(NewClaim()).value().at(0).epoch, 1);
}

// A node with room for one of two items.
TEST_F(OpenSearchStoreTest, RejectedItemsAreResentAlone) {
  std::atomic<int> bulks = 0;
  HttpRelay relay(
      Server().port(), [&](const HttpServerRequest& request) -> std::optional<HttpServerReply> {
        if (!Asks(request, "_bulk") || ++bulks > 1) return std::nullopt;
        const size_t one = request.body.find('\n', request.body.find('\n') + 1) + 1;
        Json answer =
            ParseJson(Server().Call("POST", request.target, request.body.substr(0, one)), "answer")
                .value();
        answer["items"].push_back(
            {{"create",
              {{"status", 429},
               {"error",
                {{"type", "es_rejected_execution_exception"}, {"reason", "queue is full"}}}}}});
        return Answer(200, ToJsonText(answer));
      });
  const auto store = Open(relay.port());
  const std::vector<Change> changes{Change::Put(NewRecord("a"), Due::AtOnce()),
                                    Change::Put(NewRecord("b"), Due::AtOnce())};
  const auto written = store->Write(changes).value();
  EXPECT_EQ(bulks, 2);
  EXPECT_TRUE(written[0].applied);
  EXPECT_TRUE(written[1].applied);
  EXPECT_EQ(written[1].version, store->Get("work", "b").value()->version);
}

// Every search returns the first one's result.
TEST_F(OpenSearchStoreTest, StaleSearchesNeitherClaimTwiceNorLoop) {
  std::mutex mutex;
  std::optional<std::string> first;
  std::atomic<bool> stale = true;
  HttpRelay relay(Server().port(), {},
                  [&](const HttpServerRequest& request,
                      const net::HttpResponse& response) -> std::optional<HttpServerReply> {
                    if (!Asks(request, "_search") || !stale) return std::nullopt;
                    std::lock_guard lock(mutex);
                    if (!first) first = response.body;
                    return Answer(200, *first);
                  });
  const auto behind = Open(relay.port());
  const auto other = Open();
  for (const char* key : {"a", "b", "c"}) Create(*other, key);
  EXPECT_EQ(behind->Claim(NewClaim()).value().size(), 1u);
  EXPECT_EQ(other->Claim(NewClaim(10)).value().size(), 2u);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(behind->Claim(NewClaim(10)).value().empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  Create(*other, "d");
  EXPECT_TRUE(behind->Claim(NewClaim(10)).value().empty());
  stale = false;
  EXPECT_EQ(behind->Claim(NewClaim(10)).value().at(0).key, "d");
}

TEST_F(OpenSearchStoreTest, MissingRefreshOnlyDelaysRecords) {
  std::atomic<bool> refreshes = false;
  HttpRelay relay(Server().port(),
                  [&](const HttpServerRequest& request) -> std::optional<HttpServerReply> {
                    if (refreshes || !Asks(request, "_refresh")) return std::nullopt;
                    return Answer(200, R"({"_shards":{"total":1,"successful":1,"failed":0}})");
                  });
  const auto store = Open(relay.port());
  Create(*store, "a");
  EXPECT_TRUE(store->Claim(NewClaim()).value().empty());
  EXPECT_TRUE(store->Get("work", "a").value()) << "reads by id wait for no refresh";
  ClaimRequest by_key = NewClaim();
  by_key.key = "a";
  EXPECT_EQ(store->Claim(by_key).value().at(0).epoch, 1);
  // Now it shows up in its old state: due, and long since taken.
  refreshes = true;
  EXPECT_TRUE(store->Claim(NewClaim()).value().empty());
}

TEST_F(OpenSearchStoreTest, FailedRefreshFailsAScan) {
  HttpRelay relay(Server().port(),
                  [&](const HttpServerRequest& request) -> std::optional<HttpServerReply> {
                    if (!Asks(request, "_refresh")) return std::nullopt;
                    return Answer(200, R"({"_shards":{"total":2,"successful":1,"failed":1}})");
                  });
  const auto store = Open(relay.port());
  EXPECT_EQ(store->Scan("work", "", "", 10).error().code, Code::kUnavailable);
}

// A cluster may retry a write by itself and then report its own first try as a conflict.
TEST_F(OpenSearchStoreTest, ConflictWithOwnFirstTryIsNotAConflict) {
  HttpRelay relay(Server().port(), {},
                  [&](const HttpServerRequest& request,
                      const net::HttpResponse&) -> std::optional<HttpServerReply> {
                    if (!Asks(request, "_bulk")) return std::nullopt;
                    return Answer(200, R"({"items":[{"create":{"status":409,"error":
                        {"type":"version_conflict_engine_exception","reason":"exists"}}}]})");
                  });
  const auto store = Open(relay.port());
  const Written written = Put(*store, NewRecord("a")).value().front();
  EXPECT_TRUE(written.applied);
  EXPECT_EQ(written.version, store->Get("work", "a").value()->version);
}

TEST_F(OpenSearchStoreTest, IncompleteResponsesAreUnknown) {
  HttpRelay relay(Server().port(), {},
                  [&](const HttpServerRequest& request,
                      const net::HttpResponse&) -> std::optional<HttpServerReply> {
                    if (!Asks(request, "_bulk")) return std::nullopt;
                    return Answer(200, R"({"items":[]})");
                  });
  const auto store = Open(relay.port());
  EXPECT_EQ(Put(*store, NewRecord("a")).error().code, Code::kUnknownOutcome);
}

TEST_F(OpenSearchStoreTest, DateHeaderIsUsedIfTheManagersClockIsForbidden) {
  std::atomic<bool> date = true;
  HttpRelay relay(Server().port(),
                  [&](const HttpServerRequest& request) -> std::optional<HttpServerReply> {
                    if (!Asks(request, "_nodes")) return std::nullopt;
                    std::vector<std::pair<std::string, std::string>> headers;
                    if (date) headers.emplace_back("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
                    return Answer(403, "{}", headers);
                  });
  const auto store = Open(relay.port());
  const auto now = store->Now().value();
  EXPECT_GE(now, WallTime(784'111'777'000ms));
  EXPECT_LE(now, WallTime(784'111'790'000ms));
  Create(*store, "a");
  const Record held = store->Claim(NewClaim()).value().at(0);
  EXPECT_GE(*held.due, now + 60s);
  EXPECT_TRUE(store->Claim(NewClaim()).value().empty());

  date = false;
  const auto blind = OpenStore(UrlOf(relay.port()), RealEnv());
  ASSERT_FALSE(blind);
  EXPECT_EQ(blind.error().code, Code::kPermission);
  EXPECT_NE(blind.error().hint.find("cluster:monitor/nodes/stats"), std::string::npos);
}

TEST_F(OpenSearchStoreTest, ReadOnlyIndexRefusesWritesWithAHint) {
  const auto store = Open();
  Create(*store, "a");
  for (const char* block : {"read_only_allow_delete", "read_only", "write"}) {
    const std::string setting = std::string("\"index.blocks.") + block + "\":";
    Server().Call("PUT", Index() + "/_settings", "{" + setting + "true}");
    const Error error = Put(*store, NewRecord("b")).error();
    EXPECT_EQ(error.code, Code::kReadOnly) << block << error.ToString();
    EXPECT_FALSE(error.hint.empty());
    EXPECT_EQ(store->Claim(NewClaim()).error().code, Code::kReadOnly);
    Server().Call("PUT", Index() + "/_settings", "{" + setting + "null}");
    EXPECT_FALSE(store->Get("work", "b").value());
  }
  EXPECT_EQ(store->Claim(NewClaim()).value().at(0).epoch, 1);
}

TEST_F(OpenSearchStoreTest, DeletedIndexIsNotRecreatedSilently) {
  const auto store = Open();
  Create(*store, "a");
  const Record old = store->Get("work", "a").value().value();
  Server().Call("DELETE", Index());
  // A cluster that just started reports the same, so it is believed only after a while.
  EXPECT_EQ(store->Get("work", "a").error().code, Code::kUnavailable);
  while (store->Get("work", "a").error().code == Code::kUnavailable) {
  }
  EXPECT_EQ(store->Get("work", "a").error().code, Code::kNotFound);
  EXPECT_EQ(Put(*store, NewRecord("b")).error().code, Code::kNotFound);
  EXPECT_EQ(store->Claim(NewClaim()).error().code, Code::kNotFound);
  // Reopening the store gives a new one, and a client of the old one does not confuse the two.
  const auto fresh = Open();
  EXPECT_FALSE(fresh->Get("work", "a").value());
  Create(*fresh, "a");
  while (Put(*store, old).error().code == Code::kUnavailable) {
  }
  EXPECT_EQ(Put(*store, old).error().code, Code::kNotFound);
}

TEST_F(OpenSearchStoreTest, OtherSchemasAreRefused) {
  const std::string name = space_ + "_records";
  Server().Call("PUT", "/" + name + "-000001",
                R"({"mappings":{"_meta":{"muster_schema":99}},"aliases":{")" + name + R"(":{},")" +
                    name + R"(-x":{}}})");
  const auto newer = OpenStore(UrlOf(Server().port()), RealEnv());
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, Code::kIncompatible);
  EXPECT_NE(newer.error().message.find("99"), std::string::npos);
  EXPECT_NE(newer.error().message.find("up to 1"), std::string::npos);

  space_ += "b";
  Server().Call("PUT", "/" + space_ + "_records", R"({"mappings":{}})");
  const auto foreign = OpenStore(UrlOf(Server().port()), RealEnv());
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, Code::kIncompatible);
}

TEST_F(OpenSearchStoreTest, ConcurrentFirstOpensShareOneStore) {
  std::vector<std::unique_ptr<Store>> stores(8);
  {
    std::vector<std::jthread> threads;
    for (auto& store : stores) threads.emplace_back([&] { store = Open(); });
  }
  Create(*stores.front(), "a");
  for (const auto& store : stores) EXPECT_TRUE(store->Get("work", "a").value());
}

TEST_F(OpenSearchStoreTest, TemplatesOfTheClusterDoNotChangeRecords) {
  const std::string templates = "/_index_template/" + space_;
  const std::string start =
      R"({"index_patterns":[")" + space_ + R"(_*"],"priority":200,"template":)";
  Server().Call("PUT", templates, start + R"({"settings":{"index.final_pipeline":"none-such"}}})");
  {
    const auto store = Open();
    Create(*store, "a");
    EXPECT_TRUE(store->Get("work", "a").value());
  }
  Server().Call("DELETE", Index());
  Server().Call("PUT", templates, start + R"({"mappings":{"_source":{"excludes":["body"]}}}})");
  const auto opened = OpenStore(UrlOf(Server().port()), RealEnv());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kIncompatible);
  EXPECT_NE(opened.error().message.find(R"({"excludes":["body"]})"), std::string::npos)
      << opened.error().message;
  Server().Call("DELETE", templates);
}

TEST_F(OpenSearchStoreTest, NothingIsRefreshedAutomatically) {
  const auto store = Open();
  const Json settings = ParseJson(Server().Call("GET", Index() + "/_settings"), "answer").value();
  EXPECT_EQ(settings.front()["settings"]["index"]["refresh_interval"], "-1");
}

// Workers claim and complete while the server is killed and restarted. No epoch is granted twice,
// nothing acknowledged is lost, and everything gets done.
TEST_F(OpenSearchStoreTest, KilledServerLosesNothingAndGrantsNoEpochTwice) {
  constexpr int kItems = 300;
  OpenSearchServer server;  // its own: it is killed
  const auto setup = Open(server.port());
  std::vector<Change> items;
  for (int i = 0; i < kItems; ++i) {
    items.push_back(Change::Put(NewRecord("k" + std::to_string(i)), Due::AtOnce()));
  }
  ASSERT_TRUE(setup->Write(items));

  std::mutex mutex;
  std::multiset<std::pair<std::string, int64_t>> granted;
  std::set<std::string> completed;
  std::atomic<int> failures = 0;
  std::atomic<int> claims = 0;
  const auto work = [&](std::stop_token stop) {
    const auto store = Open(server.port());
    while (!stop.stop_requested()) {
      ClaimRequest claim = NewClaim(2);
      claim.lease = 2s;
      auto held = store->Claim(claim);
      while (!held && !stop.stop_requested()) {
        ++failures;
        EXPECT_TRUE(IsTransient(held.error().code)) << held.error().ToString();
        claim.repeat = true;
        held = store->Claim(claim);
      }
      if (!held) return;
      ++claims;
      for (const Record& record : *held) {
        {
          std::lock_guard lock(mutex);
          granted.emplace(record.key, record.epoch);
        }
        const auto written = Put(*store, record, Due::Never());
        if (!written || !written->front().applied) continue;
        std::lock_guard lock(mutex);
        EXPECT_TRUE(completed.insert(record.key).second) << record.key << " completed twice";
      }
    }
  };
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) workers.emplace_back(work);
  while (claims < 10) std::this_thread::yield();
  server.Kill();
  while (failures < 4) std::this_thread::yield();
  server.Start();
  const auto checker = Open(server.port());
  const auto finished = [&] {
    const auto records = checker->Scan("work", "", "", kMaxBatch);
    EXPECT_TRUE(records) << records.error().ToString();
    return std::count_if(records->begin(), records->end(),
                         [](const Record& record) { return !record.due; });
  };
  EXPECT_TRUE(testing::Await([&] { return finished() >= kItems; }));
  for (std::jthread& worker : workers) worker.request_stop();
  workers.clear();
  EXPECT_EQ(finished(), kItems);
  EXPECT_GT(failures, 0);
  for (auto it = granted.begin(); it != granted.end(); ++it) {
    EXPECT_EQ(granted.count(*it), 1u) << it->first << " epoch " << it->second;
  }
  for (const std::string& key : completed) {
    EXPECT_FALSE(checker->Get("work", key).value()->due) << key;
  }
}

}  // namespace
}  // namespace muster::store
