#include "core/guard.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace muster {
namespace {

TEST(Guard, PassesResultsOn) {
  EXPECT_EQ(*Guarded("adding", []() -> Result<int> { return 2; }), 2);
  const auto failed = GuardedThread("adding", []() -> Result<int> {
    return Error{Code::kFull, "full"};
  });
  EXPECT_EQ(failed.error().code, Code::kFull);
}

TEST(Guard, TurnsExceptionsIntoErrors) {
  const auto thrown =
      Guarded("adding", []() -> Status { throw std::runtime_error("type must be number"); });
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.error().code, Code::kInternal);
  EXPECT_EQ(thrown.error().message, "adding: unexpected error: type must be number");
}

TEST(Guard, NoExceptionLeavesAThread) {
  EXPECT_EQ(GuardedThread("adding", []() -> Status { throw 42; }).error().message,
            "adding: unexpected error: an exception without a message");
  EXPECT_FALSE(LogThrown("adding", [] { throw 42; }));
  EXPECT_TRUE(LogThrown("adding", [] {}));
}

TEST(Guard, OnlyProcessEndPassesThrough) {
  EXPECT_EQ(Guarded("adding", []() -> Status { throw 42; }).error().message,
            "adding: unexpected error: an exception without a message");
  EXPECT_THROW(static_cast<void>(Guarded("adding", []() -> Status { throw ProcessEnd(); })),
               ProcessEnd);
}

}  // namespace
}  // namespace muster
