// The promises of muster/store.h, checked on every backend: one test per promise.

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "contract/backends.h"
#include "muster/store.h"
#include "support/skewed_env.h"

extern char** environ;

namespace muster::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kClaimers = 16;
constexpr int kClaimerProcesses = 3;
constexpr int kContended = 10'000;

store::Record NewRecord(const std::string& key, const std::string& body = "{}") {
  return store::Record{.kind = "work", .queue = "q", .key = key, .body = body};
}

store::ClaimRequest ClaimOf(const std::string& owner, int limit = 1) {
  return store::ClaimRequest{.kind = "work",
                             .queue = "q",
                             .limit = limit,
                             .owner = owner,
                             .claim_id = RealEnv().NewId(),
                             .lease = 60s,
                             .max_lease = 1h};
}

std::vector<std::string> KeysOf(const std::vector<store::Record>& records) {
  std::vector<std::string> keys;
  for (const store::Record& record : records) keys.push_back(record.key);
  return keys;
}

// Claims everything on many threads; the keys, as often as they were claimed.
std::vector<std::string> ClaimAll(store::Store& store, const std::string& owner) {
  std::mutex mutex;
  std::vector<std::string> claimed;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kClaimers; ++i) {
    threads.emplace_back([&, i] {
      // Sizes differ, so that threads collide in every way.
      store::ClaimRequest request = ClaimOf(owner + "/" + std::to_string(i), 1 + i % 5);
      request.lease = 1h;  // longer than a busy machine takes for all of them
      for (;;) {
        request.claim_id = RealEnv().NewId();
        request.repeat = false;
        auto records = store.Claim(request);
        // A store may reject too many at once: they retry.
        while (!records && IsTransient(records.error().code)) {
          request.repeat = true;
          records = store.Claim(request);
        }
        if (!records) {
          ADD_FAILURE() << records.error().ToString();
          return;
        }
        if (records->empty()) return;
        std::lock_guard lock(mutex);
        for (const store::Record& record : *records) claimed.push_back(record.key);
      }
    });
  }
  threads.clear();
  return claimed;
}

class StoreContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string reason;
    backend_ = NewBackend(GetParam(), &reason);
    if (backend_ == nullptr) GTEST_SKIP() << GetParam() << " is not available: " << reason;
    store_ = backend_->Open("main", RealEnv());
  }

  store::Written Put(store::Record record, store::Due due) {
    const store::Change change = store::Change::Put(std::move(record), due);
    auto written = store_->Write({&change, 1});
    EXPECT_TRUE(written) << written.error().ToString();
    return written ? written->front() : store::Written{};
  }

  Code PutError(store::Record record, store::Due due = store::Due::AtOnce()) {
    const store::Change change = store::Change::Put(std::move(record), due);
    auto written = store_->Write({&change, 1});
    EXPECT_FALSE(written);
    return written ? Code::kInternal : written.error().code;
  }

  store::Record Stored(const std::string& key) {
    auto record = store_->Get("work", key);
    EXPECT_TRUE(record && *record) << key;
    return record && *record ? **record : store::Record{};
  }

  std::vector<store::Record> Claim(const store::ClaimRequest& request) {
    auto claimed = store_->Claim(request);
    EXPECT_TRUE(claimed) << claimed.error().ToString();
    return claimed.value_or(std::vector<store::Record>{});
  }

  WallTime Now() { return store_->Now().value(); }

  // Polls, in the backend's time, until `condition` holds.
  template <class Condition>
  bool Await(Condition condition) {
    Env& world = backend_->World();
    const MonoTime end = world.MonoNow() + 30s;
    while (!condition()) {
      if (world.MonoNow() > end) return false;
      world.Sleep(5ms, {});
    }
    return true;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<store::Store> store_;
};

INSTANTIATE_TEST_SUITE_P(AllBackends, StoreContract, ::testing::ValuesIn(BackendNames()),
                         [](const auto& parameter) { return parameter.param; });

TEST_P(StoreContract, GetOfAnUnknownKeyFindsNothing) {
  auto record = store_->Get("work", "nobody");
  ASSERT_TRUE(record);
  EXPECT_FALSE(*record);
}

TEST_P(StoreContract, CreatedRecordIsReadBackAsWritten) {
  store::Record record = NewRecord("a", R"({"x":1})");
  record.owner = "me";
  record.attempt = 3;
  record.epoch = 99;
  const store::Written written = Put(record, store::Due::Never());
  ASSERT_TRUE(written.applied);
  EXPECT_GT(written.version, 0);
  record.version = written.version;
  record.epoch = 0;  // only claims raise it
  EXPECT_EQ(Stored("a"), record);
}

TEST_P(StoreContract, CreatingAnExistingRecordIsAConflictAndChangesNothing) {
  Put(NewRecord("a", R"("first")"), store::Due::Never());
  EXPECT_FALSE(Put(NewRecord("a", R"("second")"), store::Due::Never()).applied);
  EXPECT_EQ(Stored("a").body, R"("first")");
}

TEST_P(StoreContract, SameKeyInAnotherKindIsAnotherRecord) {
  Put(NewRecord("a"), store::Due::Never());
  store::Record other = NewRecord("a", "2");
  other.kind = "timer";
  EXPECT_TRUE(Put(other, store::Due::Never()).applied);
  EXPECT_EQ(Stored("a").body, "{}");
}

TEST_P(StoreContract, ReplaceNeedsTheStoredVersionAndRaisesIt) {
  Put(NewRecord("a", "1"), store::Due::Never());
  store::Record first = Stored("a");
  store::Record second = first;
  second.body = "2";
  second.owner = "me";
  second.attempt = 7;
  const store::Written written = Put(second, store::Due::Never());
  ASSERT_TRUE(written.applied);
  EXPECT_GT(written.version, first.version);
  second.version = written.version;
  EXPECT_EQ(Stored("a"), second);

  first.body = "3";
  EXPECT_FALSE(Put(first, store::Due::Never()).applied);
  EXPECT_EQ(Stored("a"), second);
}

TEST_P(StoreContract, ReplaceKeepsQueueAndEpoch) {
  Put(NewRecord("a"), store::Due::AtOnce());
  store::Record held = Claim(ClaimOf("me")).at(0);
  held.queue = "elsewhere";
  held.epoch = 50;
  ASSERT_TRUE(Put(held, store::Due::Never()).applied);
  EXPECT_EQ(Stored("a").queue, "q");
  EXPECT_EQ(Stored("a").epoch, 1);
}

TEST_P(StoreContract, ReplacingAMissingRecordIsAConflict) {
  store::Record record = NewRecord("a");
  record.version = 5;
  EXPECT_FALSE(Put(record, store::Due::Never()).applied);
  EXPECT_FALSE(store_->Get("work", "a").value());
}

TEST_P(StoreContract, DeleteNeedsTheStoredVersion) {
  Put(NewRecord("a"), store::Due::AtOnce());
  store::Record stale = Stored("a");
  Put(stale, store::Due::Unchanged());
  const store::Change stale_delete = store::Change::Delete(stale);
  EXPECT_FALSE(store_->Write({&stale_delete, 1}).value().front().applied);
  const store::Change good_delete = store::Change::Delete(Stored("a"));
  EXPECT_TRUE(store_->Write({&good_delete, 1}).value().front().applied);
  EXPECT_FALSE(store_->Get("work", "a").value());
  EXPECT_TRUE(Claim(ClaimOf("me")).empty());
}

TEST_P(StoreContract, RecreatedRecordIsNotMistakenForItsPredecessor) {
  Put(NewRecord("a"), store::Due::Never());
  const store::Record old = Stored("a");
  const store::Change gone = store::Change::Delete(old);
  ASSERT_TRUE(store_->Write({&gone, 1}).value().front().applied);
  Put(NewRecord("a", R"("new")"), store::Due::Never());
  EXPECT_FALSE(Put(old, store::Due::Never()).applied);
  EXPECT_FALSE(store_->Write({&gone, 1}).value().front().applied);
  EXPECT_EQ(Stored("a").body, R"("new")");
}

TEST_P(StoreContract, DueIsNeverUnchangedOrRelativeToTheStoresClock) {
  const WallTime before = Now();
  Put(NewRecord("a"), store::Due::After(10min));
  const WallTime after = Now();
  const WallTime due = Stored("a").due.value();
  EXPECT_GE(due, before + 10min);
  EXPECT_LE(due, after + 10min + 1ms);

  Put(Stored("a"), store::Due::Unchanged());
  EXPECT_EQ(Stored("a").due, due);
  Put(Stored("a"), store::Due::Never());
  EXPECT_FALSE(Stored("a").due);
  Put(Stored("a"), store::Due::Unchanged());
  EXPECT_FALSE(Stored("a").due);
}

// Whatever the store's clock is set to afterwards.
TEST_P(StoreContract, DueAtOnceIsDueByAnyClock) {
  Put(NewRecord("a"), store::Due::AtOnce());
  EXPECT_LE(Stored("a").due.value(), store::DueAtOnce(Now()));
  EXPECT_EQ(Claim(ClaimOf("me")).size(), 1u);
  EXPECT_GT(Stored("a").due.value(), Now()) << "a lease ends at its due time";
  store::Record released = Stored("a");
  released.owner.clear();
  Put(released, store::Due::AtOnce());
  EXPECT_LE(Stored("a").due.value(), store::DueAtOnce(Now()));
  EXPECT_LT(store::DueAtOnce(WallTime(1'000'000s)), store::DueAtOnce(WallTime(1'000'001s)))
      << "first come, first served";
}

TEST_P(StoreContract, ScanReturnsKeysInByteOrder) {
  const std::vector<std::string> keys{"",   "a", "a%", "a_",   "aB", "aa",
                                      "ab", "b", "ä",  "日本", "🚀"};
  std::vector<store::Change> changes;
  for (size_t i = 1; i < keys.size(); ++i)
    changes.push_back(store::Change::Put(NewRecord(keys[i]), store::Due::Never()));
  store::Record other_kind = NewRecord("aa");
  other_kind.kind = "other";
  changes.push_back(store::Change::Put(other_kind, store::Due::Never()));
  ASSERT_TRUE(store_->Write(changes));

  std::vector<std::string> all(keys.begin() + 1, keys.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(KeysOf(store_->Scan("work", "", "", 100).value()), all);
  EXPECT_EQ(KeysOf(store_->Scan("work", "a", "", 100).value()),
            (std::vector<std::string>{"a", "a%", "aB", "a_", "aa", "ab"}));
  EXPECT_EQ(KeysOf(store_->Scan("work", "a", "aB", 2).value()),
            (std::vector<std::string>{"a_", "aa"}));
  EXPECT_EQ(KeysOf(store_->Scan("work", "a%", "", 100).value()), (std::vector<std::string>{"a%"}));
  EXPECT_EQ(KeysOf(store_->Scan("work", "日", "", 100).value()),
            (std::vector<std::string>{"日本"}));
  EXPECT_TRUE(store_->Scan("work", "a", "z", 100).value().empty());
  EXPECT_TRUE(store_->Scan("work", "c", "a", 100).value().empty());
}

TEST_P(StoreContract, WriteReturnsAResultForEachChangeInOrder) {
  Put(NewRecord("exists"), store::Due::Never());
  Put(NewRecord("replaced"), store::Due::Never());
  Put(NewRecord("deleted"), store::Due::Never());
  store::Record replaced = Stored("replaced");
  replaced.body = "1";
  store::Record stale = Stored("exists");
  stale.version += 1;
  const std::vector<store::Change> changes{
      store::Change::Put(NewRecord("exists"), store::Due::Never()),
      store::Change::Put(NewRecord("new"), store::Due::AtOnce()),
      store::Change::Put(replaced, store::Due::Never()),
      store::Change::Delete(Stored("deleted")),
  };
  const auto answers = store_->Write(changes).value();
  ASSERT_EQ(answers.size(), changes.size());
  EXPECT_FALSE(answers[0].applied);
  EXPECT_TRUE(answers[1].applied);
  EXPECT_EQ(answers[1].version, Stored("new").version);
  EXPECT_TRUE(answers[2].applied);
  EXPECT_EQ(answers[2].version, Stored("replaced").version);
  EXPECT_EQ(Stored("replaced").body, "1");
  EXPECT_TRUE(answers[3].applied);
  EXPECT_FALSE(store_->Get("work", "deleted").value());
  const store::Change stale_delete = store::Change::Delete(stale);
  EXPECT_FALSE(store_->Write({&stale_delete, 1}).value().front().applied);
}

TEST_P(StoreContract, WriteAcceptsAtMostAThousandChanges) {
  std::vector<store::Change> changes;
  for (int i = 0; i <= store::kMaxBatch; ++i) {
    changes.push_back(store::Change::Put(NewRecord("k" + std::to_string(i)), store::Due::Never()));
  }
  EXPECT_EQ(store_->Write(changes).error().code, Code::kInvalid);
  EXPECT_TRUE(store_->Scan("work", "", "", 1).value().empty());
  changes.pop_back();
  const auto answers = store_->Write(changes).value();
  EXPECT_TRUE(std::all_of(answers.begin(), answers.end(),
                          [](const store::Written& w) { return w.applied; }));
  EXPECT_EQ(store_->Scan("work", "", "", store::kMaxBatch).value().size(),
            static_cast<size_t>(store::kMaxBatch));
}

TEST_P(StoreContract, WriteOfNothingDoesNothing) { EXPECT_TRUE(store_->Write({}).value().empty()); }

TEST_P(StoreContract, TwoChangesOfOneRecordInOneWriteAreRefused) {
  const std::vector<store::Change> changes{store::Change::Put(NewRecord("a"), store::Due::Never()),
                                           store::Change::Put(NewRecord("a"), store::Due::Never())};
  EXPECT_EQ(store_->Write(changes).error().code, Code::kInvalid);
  EXPECT_FALSE(store_->Get("work", "a").value());
}

TEST_P(StoreContract, ClaimTakesDueRecordsAndMarksThem) {
  const store::Written created = Put(NewRecord("a", R"({"x":1})"), store::Due::AtOnce());
  const WallTime before = Now();
  const auto claimed = Claim(ClaimOf("me"));
  ASSERT_EQ(claimed.size(), 1u);
  const store::Record& record = claimed.front();
  EXPECT_EQ(record.key, "a");
  EXPECT_EQ(record.owner, "me");
  EXPECT_EQ(record.epoch, 1);
  EXPECT_EQ(record.attempt, 1);
  EXPECT_GT(record.version, created.version);
  EXPECT_EQ(record.body, R"({"x":1})");
  EXPECT_GE(*record.due, before + 60s);
  EXPECT_LE(*record.due, Now() + 60s + 1ms);
  EXPECT_EQ(Stored("a"), record);
  EXPECT_TRUE(Claim(ClaimOf("other")).empty());
}

TEST_P(StoreContract, ClaimIgnoresOtherQueuesAndRecordsNotDue) {
  Put(NewRecord("later"), store::Due::After(1h));
  Put(NewRecord("never"), store::Due::Never());
  store::Record other_queue = NewRecord("elsewhere");
  other_queue.queue = "q2";
  Put(other_queue, store::Due::AtOnce());
  store::Record other_kind = NewRecord("otherwise");
  other_kind.kind = "timer";
  Put(other_kind, store::Due::AtOnce());
  EXPECT_TRUE(Claim(ClaimOf("me", 10)).empty());
}

TEST_P(StoreContract, ClaimTakesTheOldestUpToItsLimit) {
  for (const char* key : {"c", "a", "b"}) {
    Put(NewRecord(key), store::Due::AtOnce());
    const WallTime written = Now();
    ASSERT_TRUE(Await([&] { return store::DueAtOnce(Now()) > store::DueAtOnce(written); }));
  }
  EXPECT_EQ(KeysOf(Claim(ClaimOf("me"))), std::vector<std::string>{"c"});
  auto rest = KeysOf(Claim(ClaimOf("me", 10)));
  std::sort(rest.begin(), rest.end());
  EXPECT_EQ(rest, (std::vector<std::string>{"a", "b"}));
}

TEST_P(StoreContract, ClaimByKeyTakesOnlyThatRecordAndOnlyWhenDue) {
  Put(NewRecord("a"), store::Due::AtOnce());
  Put(NewRecord("b"), store::Due::AtOnce());
  Put(NewRecord("later"), store::Due::After(1h));
  store::ClaimRequest request = ClaimOf("me", 10);
  request.key = "b";
  EXPECT_EQ(KeysOf(Claim(request)), std::vector<std::string>{"b"});
  request.claim_id = RealEnv().NewId();
  EXPECT_TRUE(Claim(request).empty());
  request.key = "later";
  EXPECT_TRUE(Claim(request).empty());
  request.key = "missing";
  EXPECT_TRUE(Claim(request).empty());
  request.key = "a";
  request.queue = "q2";
  EXPECT_TRUE(Claim(request).empty());
}

TEST_P(StoreContract, RepeatedClaimGivesTheSameResult) {
  for (const char* key : {"a", "b", "c"}) Put(NewRecord(key), store::Due::AtOnce());
  store::ClaimRequest request = ClaimOf("me", 2);
  auto first = Claim(request);
  request.repeat = true;
  auto second = Claim(request);
  const auto by_key = [](const store::Record& x, const store::Record& y) { return x.key < y.key; };
  std::sort(first.begin(), first.end(), by_key);
  std::sort(second.begin(), second.end(), by_key);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first, second);
}

TEST_P(StoreContract, RepeatedClaimThatWasLostClaims) {
  Put(NewRecord("a"), store::Due::AtOnce());
  store::ClaimRequest request = ClaimOf("me");
  request.repeat = true;
  EXPECT_EQ(KeysOf(Claim(request)), std::vector<std::string>{"a"});
}

TEST_P(StoreContract, RepeatedClaimIgnoresRecordsTakenSince) {
  Put(NewRecord("a"), store::Due::AtOnce());
  store::ClaimRequest request = ClaimOf("me");
  request.lease = 1ms;
  ASSERT_EQ(Claim(request).size(), 1u);
  ASSERT_TRUE(Await([&] { return !Claim(ClaimOf("other")).empty(); }));
  request.repeat = true;
  EXPECT_TRUE(Claim(request).empty());
  EXPECT_EQ(Stored("a").owner, "other");
}

TEST_P(StoreContract, ExpiredLeaseIsClaimedAgainWithAHigherEpoch) {
  Put(NewRecord("a"), store::Due::AtOnce());
  store::ClaimRequest request = ClaimOf("first");
  request.lease = 20ms;
  const store::Record held = Claim(request).at(0);
  std::vector<store::Record> again;
  ASSERT_TRUE(Await([&] { return !(again = Claim(ClaimOf("second"))).empty(); }));
  EXPECT_EQ(again.front().epoch, held.epoch + 1);
  EXPECT_EQ(again.front().attempt, 2);
  EXPECT_EQ(again.front().owner, "second");

  store::Record late = held;
  late.body = R"("too late")";
  EXPECT_FALSE(Put(late, store::Due::Never()).applied);
  EXPECT_EQ(Stored("a").body, "{}");
}

TEST_P(StoreContract, LeaseDoublesWithEveryAttemptUpToItsMaximum) {
  store::Record record = NewRecord("a");
  record.attempt = 0;
  Put(record, store::Due::AtOnce());
  for (int attempt = 1; attempt <= 6; ++attempt) {
    store::ClaimRequest request = ClaimOf("me");
    request.lease = 10min;
    request.max_lease = 100min;
    const WallTime before = Now();
    const store::Record held = Claim(request).at(0);
    EXPECT_EQ(held.attempt, attempt);
    const milliseconds lease = std::min<milliseconds>(10min * (1 << (attempt - 1)), 100min);
    EXPECT_EQ(lease, store::LeaseFor(attempt, 10min, 100min));
    EXPECT_GE(*held.due, before + lease);
    EXPECT_LE(*held.due, Now() + lease + 1ms);
    ASSERT_TRUE(Put(held, store::Due::AtOnce()).applied);
  }
  store::Record tired = Stored("a");
  tired.attempt = 1'000'000;  // must not overflow
  Put(tired, store::Due::AtOnce());
  const WallTime before = Now();
  EXPECT_GE(*Claim(ClaimOf("me")).at(0).due, before + 1h);
}

TEST_P(StoreContract, ProgressResetsAttempts) {
  Put(NewRecord("a"), store::Due::AtOnce());
  store::Record held = Claim(ClaimOf("me")).at(0);
  held.attempt = 0;
  Put(held, store::Due::AtOnce());
  EXPECT_EQ(Claim(ClaimOf("me")).at(0).attempt, 1);
}

TEST_P(StoreContract, FinishedRecordIsNeverClaimed) {
  Put(NewRecord("a"), store::Due::AtOnce());
  Put(Claim(ClaimOf("me")).at(0), store::Due::Never());
  EXPECT_TRUE(Claim(ClaimOf("me")).empty());
}

TEST_P(StoreContract, EveryRecordIsClaimedExactlyOnceByManyThreadsAndProcesses) {
  if (GetParam() == "simulated") return;  // single-threaded; the simulator covers it
  std::vector<store::Change> batch;
  for (int i = 0; i < kContended; ++i) {
    batch.push_back(store::Change::Put(NewRecord("k" + std::to_string(i)), store::Due::AtOnce()));
    if (batch.size() == store::kMaxBatch) {
      ASSERT_TRUE(store_->Write(batch));
      batch.clear();
    }
  }
  const std::string url = backend_->Url("main");
  const std::string output = ::testing::TempDir() + "/claims-" + RealEnv().NewId();
  std::vector<pid_t> children;
  for (int i = 0; !url.empty() && i < kClaimerProcesses; ++i) {
    const std::string owner = "process" + std::to_string(i);
    const std::string file = output + std::to_string(i);
    const char* argv[] = {"/proc/self/exe", "--claim-all", url.c_str(),
                          owner.c_str(),    file.c_str(),  nullptr};
    pid_t child = 0;
    ASSERT_EQ(posix_spawn(&child, argv[0], nullptr, nullptr, const_cast<char**>(argv), environ), 0);
    children.push_back(child);
  }
  std::vector<std::string> claimed = ClaimAll(*store_, "parent");
  for (size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    ASSERT_EQ(waitpid(children[i], &status, 0), children[i]);
    EXPECT_EQ(status, 0);
    std::ifstream file(output + std::to_string(i));
    for (std::string key; std::getline(file, key);) claimed.push_back(key);
    std::remove((output + std::to_string(i)).c_str());
  }
  EXPECT_EQ(claimed.size(), static_cast<size_t>(kContended));
  EXPECT_EQ(std::set<std::string>(claimed.begin(), claimed.end()).size(),
            static_cast<size_t>(kContended));
}

TEST_P(StoreContract, OnlyOneOfManyWritersOfOneVersionWins) {
  if (GetParam() == "simulated") return;
  Put(NewRecord("a"), store::Due::Never());
  const store::Record base = Stored("a");
  std::atomic<int> wins = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kClaimers; ++i) {
    threads.emplace_back([&, i] {
      store::Record mine = base;
      mine.body = std::to_string(i);
      const store::Change change = store::Change::Put(mine, store::Due::Never());
      auto written = store_->Write({&change, 1});
      if (written && written->front().applied) ++wins;
    });
  }
  threads.clear();
  EXPECT_EQ(wins, 1);
}

TEST_P(StoreContract, EachOfManyWritersGetsItsOwnResults) {
  if (GetParam() == "simulated") return;
  std::atomic<int> wins = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kClaimers; ++i) {
    threads.emplace_back([&, i] {
      store::Record mine = NewRecord("own-" + std::to_string(i));
      for (int round = 0; round < 10; ++round) {
        store::Record stale = mine;
        stale.key = "taken-" + std::to_string(round);
        stale.version = 0;  // all create it
        mine.body = std::to_string(round);
        const std::vector<store::Change> changes{store::Change::Put(stale, store::Due::Never()),
                                                 store::Change::Put(mine, store::Due::Never())};
        const auto written = store_->Write(changes);
        ASSERT_TRUE(written) << written.error().ToString();
        ASSERT_EQ(written->size(), 2U);
        ASSERT_TRUE(written->back().applied);
        mine.version = written->back().version;
        if (written->front().applied) ++wins;
        ASSERT_EQ(Stored(mine.key).version, mine.version);
        ASSERT_EQ(Stored(mine.key).body, mine.body);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wins, 10);
}

TEST_P(StoreContract, WorkersClockDoesNotMatter) {
  for (const auto skew : {std::chrono::hours(1), std::chrono::hours(-1)}) {
    SkewedEnv env(skew);
    auto skewed = backend_->Open("clock" + std::to_string(skew.count() + 1), env);
    const store::Change change = store::Change::Put(NewRecord("a"), store::Due::AtOnce());
    ASSERT_TRUE(skewed->Write({&change, 1}));
    const WallTime before = skewed->Now().value();
    const store::Record held = skewed->Claim(ClaimOf("skewed")).value().at(0);
    EXPECT_GE(*held.due, before + 60s);
    EXPECT_LE(*held.due, skewed->Now().value() + 60s + 1ms);
    EXPECT_TRUE(skewed->Claim(ClaimOf("thief")).value().empty());
  }
}

TEST_P(StoreContract, NamespacesDoNotSeeEachOther) {
  auto other = backend_->Open("other", RealEnv());
  Put(NewRecord("a"), store::Due::AtOnce());
  EXPECT_FALSE(other->Get("work", "a").value());
  EXPECT_TRUE(other->Scan("work", "", "", 10).value().empty());
  EXPECT_TRUE(other->Claim(ClaimOf("me")).value().empty());
  EXPECT_EQ(Claim(ClaimOf("me")).size(), 1u);
}

TEST_P(StoreContract, SecondConnectionSeesTheSameRecords) {
  Put(NewRecord("a"), store::Due::AtOnce());
  auto second = backend_->Open("main", RealEnv());
  EXPECT_EQ(second->Get("work", "a").value(), Stored("a"));
  EXPECT_EQ(second->Claim(ClaimOf("me")).value().size(), 1u);
  EXPECT_TRUE(Claim(ClaimOf("me")).empty());
}

TEST_P(StoreContract, DeferredWritesAreVisibleAtOnce) {
  auto second = backend_->Open("main", RealEnv());
  const store::Change change = store::Change::Put(NewRecord("a"), store::Due::AtOnce(), true);
  ASSERT_TRUE(store_->Write({&change, 1}).value().front().applied);
  ASSERT_TRUE(second->Get("work", "a").value());
  store::ClaimRequest request = ClaimOf("me");
  request.deferred = true;
  ASSERT_EQ(KeysOf(store_->Claim(request).value()), std::vector<std::string>{"a"});
  EXPECT_EQ(second->Get("work", "a").value()->epoch, 1);
  EXPECT_TRUE(second->Claim(ClaimOf("other")).value().empty());
}

TEST_P(StoreContract, LimitsAreAcceptedAndOneByteMoreIsRefused) {
  EXPECT_TRUE(Put(NewRecord(std::string(store::kMaxKeyBytes, 'k')), store::Due::AtOnce()).applied);
  EXPECT_EQ(PutError(NewRecord(std::string(store::kMaxKeyBytes + 1, 'k'))), Code::kInvalid);

  const std::string body = "\"" + std::string(store::kMaxBodyBytes - 2, 'b') + "\"";
  EXPECT_TRUE(Put(NewRecord("big", body), store::Due::Never()).applied);
  EXPECT_EQ(Stored("big").body, body);
  EXPECT_EQ(PutError(NewRecord("bigger", body + " ")), Code::kInvalid);

  const std::string deep =
      std::string(store::kMaxBodyDepth, '[') + std::string(store::kMaxBodyDepth, ']');
  EXPECT_TRUE(Put(NewRecord("deep", deep), store::Due::Never()).applied);
  EXPECT_EQ(PutError(NewRecord("deeper", "[" + deep + "]")), Code::kInvalid);
  const std::string long_number(30, '9');
  EXPECT_EQ(PutError(NewRecord("deeper", "[" + long_number + ",[" + deep + "]]")), Code::kInvalid);

  store::Record long_owner = NewRecord("owner");
  long_owner.owner = std::string(store::kMaxNameBytes, 'o');
  EXPECT_TRUE(Put(long_owner, store::Due::Never()).applied);
  long_owner.key = "owner2";
  long_owner.owner += "o";
  EXPECT_EQ(PutError(long_owner), Code::kInvalid);

  EXPECT_EQ(store_->Claim(ClaimOf("me", store::kMaxBatch + 1)).error().code, Code::kInvalid);
  EXPECT_EQ(store_->Claim(ClaimOf("me", 0)).error().code, Code::kInvalid);
  EXPECT_EQ(store_->Scan("work", "", "", store::kMaxBatch + 1).error().code, Code::kInvalid);
}

TEST_P(StoreContract, InvalidTextAndJsonAreRefused) {
  using namespace std::string_literals;
  for (const std::string& bad :
       {""s, "a\0b"s, "\xff"s, "\xc0\x80"s, "\xed\xa0\x80"s, "\xf4\x90\x80\x80"s}) {
    EXPECT_EQ(PutError(NewRecord(bad)), Code::kInvalid);
    EXPECT_EQ(store_->Get("work", bad).error().code, Code::kInvalid);
    EXPECT_EQ(PutError(NewRecord("k", "\"" + bad)), Code::kInvalid);
    store::Record queue = NewRecord("k");
    queue.queue = bad;
    EXPECT_EQ(PutError(queue), Code::kInvalid);
  }
  for (const char* bad :
       {"", "{", "nul", "{\"a\":1}}", "'a'", "[1,]", "\"\x01\"", "\xef\xbb\xbf{}"}) {
    EXPECT_EQ(PutError(NewRecord("k", bad)), Code::kInvalid) << bad;
  }
  EXPECT_EQ(PutError(NewRecord("k"), store::Due::Unchanged()), Code::kInvalid);
  EXPECT_EQ(PutError(NewRecord("k"), store::Due::After(-1ms)), Code::kInvalid);
  EXPECT_TRUE(store_->Scan("work", "", "", 10).value().empty());
}

TEST_P(StoreContract, OddTextsAreStoredByteForByte) {
  const std::vector<std::string> odd{
      "'; DROP TABLE records; --",
      "100%_\\",
      "\"quoted\"",
      " leading and trailing ",
      "a\tb\nc",
      "${env:HOME}",
      "Ünïcödé",
      "é",
      "日本語",
      "🚀👩‍👩‍👧",
      "{1,2}",
      "NULL",
      "\\x41",
      "\x01\x7f",
  };
  for (const std::string& text : odd) {
    store::Record record =
        NewRecord(text, R"({"n":1.0,"e":1e3, "big":123456789012345678901234567890,
        "nul":"\u0000","dup":1,"dup":2,"u":"é日🚀\u00e9"})");
    record.queue = text;
    record.owner = text;
    ASSERT_TRUE(Put(record, store::Due::AtOnce()).applied) << text;
    record.version = Stored(text).version;
    record.due = Stored(text).due;
    EXPECT_EQ(Stored(text), record);
    store::ClaimRequest request = ClaimOf(text);
    request.queue = text;
    EXPECT_EQ(KeysOf(Claim(request)), std::vector<std::string>{text});
  }
  EXPECT_EQ(store_->Scan("work", "", "", 100).value().size(), odd.size());
}

TEST_P(StoreContract, WaitEndsEarlyAfterAWrite) {
  if (GetParam() == "simulated") return;  // never wakes waiters, on purpose
  auto second = backend_->Open("main", RealEnv());
  std::atomic<bool> woken = false;
  std::jthread waiter([&](std::stop_token stop) {
    store_->Wait("work", 1h, stop);
    woken = true;
  });
  int written = 0;
  EXPECT_TRUE(Await([&] {
    const store::Change change =
        store::Change::Put(NewRecord("k" + std::to_string(written++)), store::Due::AtOnce());
    EXPECT_TRUE(second->Write({&change, 1}));
    return woken.load();
  }));
}

TEST_P(StoreContract, WaitEndsAtItsTimeoutAndOnRequest) {
  const MonoTime start = backend_->World().MonoNow();
  store_->Wait("work", 30ms, {});
  EXPECT_LT(backend_->World().MonoNow() - start, 10s);

  std::stop_source stop;
  stop.request_stop();
  store_->Wait("work", 1h, stop.get_token());
  EXPECT_LT(backend_->World().MonoNow() - start, 20s);
}

}  // namespace

int ClaimAllMain(const std::string& url, const std::string& owner, const std::string& file) {
  auto store = store::OpenStore(url, RealEnv());
  if (!store) {
    std::cerr << store.error().ToString() << "\n";
    return 1;
  }
  std::ofstream out(file);
  for (const std::string& key : ClaimAll(**store, owner)) out << key << "\n";
  return out.good() && !::testing::Test::HasFailure() ? 0 : 1;
}

}  // namespace muster::testing

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--claim-all") {
    return muster::testing::ClaimAllMain(argv[2], argv[3], argv[4]);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
