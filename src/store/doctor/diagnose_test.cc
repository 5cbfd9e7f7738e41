#include "store/doctor/diagnose.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "muster/store.h"
#include "store/doctor/diagnose_backends.h"

namespace muster::store {
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

TEST(Diagnose, ReportsTheClockDifference) {
  EXPECT_EQ(ClockFinding(10'000, 12'001, 11'000).message,
            "the store's clock is 1001 ms ahead of this machine's");
  EXPECT_EQ(ClockFinding(10'000, 8'999, 11'000).message,
            "the store's clock is 1001 ms behind this machine's");
  EXPECT_EQ(ClockFinding(10'000, 8'999, 11'000).level, Finding::Level::kWarn);
  EXPECT_FALSE(ClockFinding(10'000, 8'999, 11'000).hint.empty());
}

TEST(Diagnose, MemoryStoreGetsAWarning) {
  auto findings = DiagnoseStore("memory:", RealEnv()).value();
  ASSERT_EQ(findings.size(), 5U);
  EXPECT_EQ(findings[0].check, "durability");
  EXPECT_EQ(findings[0].level, Finding::Level::kWarn);
  EXPECT_EQ(findings[3].check, "write");
  EXPECT_EQ(findings[3].level, Finding::Level::kOk);
  EXPECT_EQ(findings[4].check, "waits");
  EXPECT_EQ(findings[4].level, Finding::Level::kOk);
}

TEST(Diagnose, LeasesLeftByAWrongClockAreFound) {
  const std::string path = testing::TempDir() + "/waits-" + RealEnv().NewId() + ".db";
  {
    auto store = OpenStore("sqlite:" + path, RealEnv()).value();
    const Change changes[] = {
        Change::Put({.kind = "work", .queue = "run", .key = "run/now"}, Due::Now()),
        Change::Put({.kind = "work", .queue = "run", .key = "run/soon"},
                    Due::After(std::chrono::minutes(16))),
        Change::Put({.kind = "work", .queue = "run", .key = "run/stuck"},
                    Due::After(std::chrono::minutes(61)))};
    ASSERT_TRUE(store->Write(changes));
  }
  const auto findings = DiagnoseStore("sqlite:" + path, RealEnv()).value();
  const Finding& waits = findings.back();
  EXPECT_EQ(waits.check, "waits");
  EXPECT_EQ(waits.level, Finding::Level::kWarn);
  EXPECT_NE(waits.message.find("1 work item waits for up to 60 minutes, 'run/stuck'"),
            std::string::npos)
      << waits.message;
  for (const char* suffix : {"", "-wal", "-shm"}) std::remove((path + suffix).c_str());
}

TEST(Diagnose, InvalidUrlIsAnErrorNotAFinding) {
  EXPECT_EQ(DiagnoseStore("nonsense", RealEnv()).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace muster::store
