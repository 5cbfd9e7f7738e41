#include "work/coordinator.h"

#include <gtest/gtest.h>

#include "store/backends.h"
#include "support/skewed_env.h"
#include "work/records.h"

namespace muster::work {
namespace {

using namespace std::chrono_literals;

class JoinTest : public ::testing::Test {
 protected:
  // The start of a run that is created by a machine whose clock is off.
  int64_t Start(const std::string& run, std::chrono::hours skew, bool new_incarnation = false) {
    testing::SkewedEnv env(skew);
    const RunSpec spec{.name = run, .new_incarnation = new_incarnation};
    const auto joined = WorkCoordinator::Join(*store_, env, spec, {}, "worker");
    EXPECT_TRUE(joined) << joined.error().ToString();
    return RunBody::FromJson(store_->Get(kRunKind, run).value()->body).value().since_ms;
  }

  static int64_t NowMs() { return RealEnv().WallNow().time_since_epoch().count(); }

  const std::unique_ptr<store::Store> store_ = store::NewMemoryStore(RealEnv());
};

TEST_F(JoinTest, ARunStartsByTheClockOfItsStore) {
  const int64_t before = NowMs();
  for (const auto skew : {-48h, 48h}) {
    const int64_t start = Start("skewed" + std::to_string(skew.count()), skew);
    EXPECT_GE(start, before);
    EXPECT_LE(start, NowMs() + 10);
  }
}

TEST_F(JoinTest, LaterRunStartsLaterEvenIfTheClockWasSetBack) {
  RunBody earlier;
  earlier.incarnation = "i";
  earlier.since_ms = NowMs() + 1'000'000;
  const store::Change change = store::Change::Put(
      store::Record{.kind = kRunKind, .queue = "a", .key = "a", .body = earlier.ToJson()},
      store::Due::Never());
  ASSERT_TRUE(store_->Write({&change, 1}));
  const int64_t second = Start("b", 0h);
  EXPECT_GT(second, earlier.since_ms);
  EXPECT_GT(Start("0", 0h), second);
  EXPECT_GT(Start("b", 0h, /*new_incarnation=*/true), second);
}

}  // namespace
}  // namespace muster::work
