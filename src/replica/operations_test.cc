// What operators ask of a set of replicas.

#include "replica/operations.h"

#include <gtest/gtest.h>

#include <functional>

#include "replica/memory_read_model.h"
#include "replica/set_records.h"
#include "store/store.h"
#include "store/store_wrapper.h"

namespace muster::replica {
namespace {

// Calls `after_scan` once the records were read.
class LateStore final : public store::StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  Result<std::vector<store::Record>> Scan(std::string_view kind, std::string_view prefix,
                                          std::string_view after, int limit) override {
    auto records = StoreWrapper::Scan(kind, prefix, after, limit);
    if (after_scan) std::exchange(after_scan, nullptr)();
    return records;
  }
  std::function<void()> after_scan;
};

class OperationsTest : public ::testing::Test {
 protected:
  void Put(const std::string& key, const std::string& body) {
    const auto known = store_->Get(kReplicaKind, key).value();
    store::Record record =
        known ? *known : store::Record{.kind = kReplicaKind, .queue = kReplicaQueue, .key = key};
    record.body = body;
    const store::Change change = store::Change::Put(record, store::Due::Never());
    ASSERT_TRUE(store_->Write({&change, 1})->front().applied);
  }
  void Mark(const std::string& worker, int64_t position, int hangs) {
    Put(SuspectKey("s", "p", 1, worker),
        Suspect{.projection = "p", .worker = worker, .positions = {position}, .hangs = hangs}
            .ToBody());
  }
  // The positions of the worker's mark; empty: it has none.
  std::vector<int64_t> Marked(const std::string& worker) {
    const auto record = store_->Get(kReplicaKind, SuspectKey("s", "p", 1, worker)).value();
    return record ? Suspect::FromBody(record->body)->positions : std::vector<int64_t>();
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore(RealEnv());
  LateStore late_{*store_};
  MemoryReadModel model_;
};

TEST_F(OperationsTest, AReplayForgetsOnlyTheMarksThatItHasSeen) {
  Put(MemberKey("s", "living"), MemberState{.phase = MemberState::Phase::kRunning}.ToBody());
  Put(MemberKey("s", "dead"), MemberState{.phase = MemberState::Phase::kDead}.ToBody());
  Mark("hung", 1, 1);
  Mark("dead", 2, 0);
  Mark("living", 3, 0);  // in flight
  Mark("again", 4, 1);
  late_.after_scan = [&] {
    Mark("again", 5, 1);
    Mark("new", 6, 1);
  };
  ASSERT_TRUE(ReplayParked(late_, model_, {"s", "p", 1}, ""));
  EXPECT_EQ(Marked("hung"), std::vector<int64_t>());
  EXPECT_EQ(Marked("dead"), std::vector<int64_t>());
  EXPECT_EQ(Marked("living"), std::vector<int64_t>{3});
  EXPECT_EQ(Marked("again"), std::vector<int64_t>{5});
  EXPECT_EQ(Marked("new"), std::vector<int64_t>{6});
}

}  // namespace
}  // namespace muster::replica
