#include "store/diagnose.h"

#include <gtest/gtest.h>

#include "store/diagnose_backends.h"

namespace muster {
namespace {

Finding ClockFinding(int asked, int store, int answered) {
  auto at = [](int milliseconds) { return WallTime(std::chrono::milliseconds(milliseconds)); };
  Findings findings;
  DiagnoseClock(at(asked), at(store), at(answered), findings);
  return findings.Take().at(0);
}

TEST(Diagnose, ClocksAgreeWithinTheRoundTripAndASecond) {
  EXPECT_EQ(ClockFinding(10'000, 10'500, 11'000).level, Finding::Level::kOk);
  EXPECT_EQ(ClockFinding(10'000, 12'000, 11'000).level, Finding::Level::kOk);
  EXPECT_EQ(ClockFinding(10'000, 9'000, 11'000).level, Finding::Level::kOk);
  EXPECT_EQ(ClockFinding(10'000, 15'000, 60'000).level, Finding::Level::kOk);
}

TEST(Diagnose, SaysHowFarAndWhichWayClocksDiffer) {
  EXPECT_EQ(ClockFinding(10'000, 12'001, 11'000).message,
            "the store's clock is 1001 ms ahead of this machine's");
  EXPECT_EQ(ClockFinding(10'000, 8'999, 11'000).message,
            "the store's clock is 1001 ms behind this machine's");
  EXPECT_EQ(ClockFinding(10'000, 8'999, 11'000).level, Finding::Level::kWarn);
  EXPECT_FALSE(ClockFinding(10'000, 8'999, 11'000).hint.empty());
}

TEST(Diagnose, AMemoryStoreIsUsedAndWarnedOf) {
  auto findings = DiagnoseStore("memory:", RealEnv()).value();
  ASSERT_EQ(findings.size(), 4U);
  EXPECT_EQ(findings[0].check, "durability");
  EXPECT_EQ(findings[0].level, Finding::Level::kWarn);
  EXPECT_EQ(findings[3].check, "write");
  EXPECT_EQ(findings[3].level, Finding::Level::kOk);
}

TEST(Diagnose, AUrlThatCannotBeReadIsAnErrorAndNotAFinding) {
  EXPECT_EQ(DiagnoseStore("nonsense", RealEnv()).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace muster
