#include "store/doctor/diagnose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

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

// What is found of these records.
Finding WaitsOf(const std::vector<Change>& changes) {
  const std::string path = testing::TempDir() + "/waits-" + RealEnv().NewId() + ".db";
  auto store = OpenStore("sqlite:" + path, RealEnv()).value();
  for (std::span<const Change> left(changes); !left.empty();) {
    const auto some = left.first(std::min<size_t>(left.size(), kMaxBatch));
    EXPECT_TRUE(store->Write(some));
    left = left.subspan(some.size());
  }
  store.reset();
  const Finding waits = DiagnoseStore("sqlite:" + path, RealEnv()).value().back();
  for (const char* suffix : {"", "-wal", "-shm"}) std::remove((path + suffix).c_str());
  EXPECT_EQ(waits.check, "waits");
  return waits;
}

Change Held(const char* kind, const char* key, std::chrono::minutes lease) {
  return Change::Put({.kind = kind, .queue = "q", .key = key, .owner = "me"}, Due::After(lease));
}

TEST(Diagnose, LeasesLeftByAWrongClockAreFound) {
  const Finding waits =
      WaitsOf({Change::Put({.kind = "work", .queue = "q", .key = "run/now"}, Due::AtOnce()),
               Held("work", "run/soon", std::chrono::minutes(16)),
               Held("work", "run/stuck", std::chrono::minutes(61))});
  EXPECT_EQ(waits.level, Finding::Level::kWarn);
  EXPECT_NE(waits.message.find("work item 'run/stuck' waits for up to 60 minutes"),
            std::string::npos)
      << waits.message;
}

TEST(Diagnose, LeasesOfAllKindsAreFound) {
  const std::chrono::minutes hour(61);
  for (const char* kind :
       {"work", "prepare", "budget", "redrive_lease", "states", "plan.run", "notification"}) {
    EXPECT_EQ(WaitsOf({Held(kind, "a", hour)}).level, Finding::Level::kWarn) << kind;
  }
  const Finding two = WaitsOf({Held("states", "a", hour), Held("plan.run", "m", 2 * hour)});
  EXPECT_NE(two.message.find("execution 'a' and 1 more wait for up to 121 minutes"),
            std::string::npos)
      << two.message;
}

TEST(Diagnose, WhatMayWaitIsNotReported) {
  const std::chrono::hours day(24);
  EXPECT_EQ(WaitsOf({Change::Put({.kind = "states", .queue = "q", .key = "timer"}, Due::After(day)),
                     Held("replica", "set/member/dead", day)})
                .level,
            Finding::Level::kOk);
}

TEST(Diagnose, SaysWhatItDidNotLookAt) {
  std::vector<Change> changes;
  for (int i = 0; i < 10'000; ++i) {
    changes.push_back(
        Change::Put({.kind = "work", .queue = "q", .key = std::to_string(i)}, Due::AtOnce()));
  }
  EXPECT_EQ(WaitsOf(changes).message.find("only"), std::string::npos);
  changes.push_back(Held("work", "~last", std::chrono::minutes(61)));
  const Finding some = WaitsOf(changes);
  EXPECT_EQ(some.level, Finding::Level::kOk);
  EXPECT_NE(some.message.find("looked at only the first 10000 records of: work"), std::string::npos)
      << some.message;
}

TEST(Diagnose, InvalidUrlIsAnErrorNotAFinding) {
  EXPECT_EQ(DiagnoseStore("nonsense", RealEnv()).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace muster::store
