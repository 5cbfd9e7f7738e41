#include "store/record_scan.h"

#include <gtest/gtest.h>

#include "store/store.h"
#include "store/store_wrapper.h"

namespace muster::store {
namespace {

// Counts scans, and fails the one of this number.
class CountingStore : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;

  Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                   std::string_view after, int limit) override {
    if (++scans == fails) return Error{Code::kUnavailable, "away"};
    return inner().Scan(kind, prefix, after, limit);
  }

  int scans = 0;
  int fails = 0;
};

class RecordScanTest : public ::testing::Test {
 protected:
  void Put(const std::string& key) {
    const Change put = Change::Put(Record{.kind = "thing", .queue = "q", .key = key}, Due::Never());
    ASSERT_TRUE(memory_->Write({&put, 1}));
  }

  // The keys, up to the first error.
  std::vector<std::string> Keys(RecordScan& scan) {
    std::vector<std::string> keys;
    for (auto record = scan.Next(); record && *record; record = scan.Next())
      keys.push_back((*record)->key);
    return keys;
  }

  const std::unique_ptr<Store> memory_ = NewMemoryStore(RealEnv());
  CountingStore store_{*memory_};
};

TEST_F(RecordScanTest, ReadsAllPagesInOrder) {
  for (const char* key : {"a/1", "b/2", "b/1", "b/3", "c/1"}) Put(key);
  RecordScan scan(store_, "thing", "b/", 2);
  EXPECT_EQ(Keys(scan), (std::vector<std::string>{"b/1", "b/2", "b/3"}));
  EXPECT_EQ(store_.scans, 2);
  EXPECT_FALSE(*scan.Next());
  EXPECT_EQ(store_.scans, 2) << "the end is known";
}

TEST_F(RecordScanTest, AFullLastPageIsFollowedByAnEmptyOne) {
  for (const char* key : {"b/1", "b/2"}) Put(key);
  RecordScan scan(store_, "thing", "b/", 2);
  EXPECT_EQ(Keys(scan).size(), 2U);
  EXPECT_EQ(store_.scans, 2);
}

TEST_F(RecordScanTest, BeginsAfterAKey) {
  for (const char* key : {"b/1", "b/2", "b/3"}) Put(key);
  RecordScan scan(store_, "thing", "b/", 2, "b/1");
  EXPECT_EQ(Keys(scan), (std::vector<std::string>{"b/2", "b/3"}));
}

TEST_F(RecordScanTest, AnErrorIsReturnedAndThePageReadAgain) {
  for (const char* key : {"b/1", "b/2", "b/3"}) Put(key);
  store_.fails = 2;
  RecordScan scan(store_, "thing", "b/", 2);
  EXPECT_EQ(Keys(scan), (std::vector<std::string>{"b/1", "b/2"}));
  EXPECT_EQ(Keys(scan), (std::vector<std::string>{"b/3"}));
}

}  // namespace
}  // namespace muster::store
