#include "work/wait_report.h"

#include <gtest/gtest.h>

namespace muster::work {
namespace {

constexpr const char* kSink = "the sink, which has not answered for 3s";

TEST(WaitReport, SaysNothingUntilSomethingIsWaitedFor) {
  WaitReport report;
  EXPECT_EQ(report.Advanced(), std::nullopt);
  EXPECT_EQ(report.Known(""), std::nullopt);
  EXPECT_EQ(report.Unanswered(""), std::nullopt);
}

TEST(WaitReport, AWaitIsRepeatedAndEndsOnce) {
  WaitReport report;
  EXPECT_EQ(report.Unanswered(kSink), kSink);
  EXPECT_EQ(report.Unanswered(kSink), kSink);
  EXPECT_EQ(report.Advanced(), "");
  EXPECT_EQ(report.Advanced(), std::nullopt);
}

TEST(WaitReport, WhatTheEngineKnowsComesBeforeACallThatDoesNotReturn) {
  WaitReport report;
  EXPECT_EQ(report.Known("the sink: it is too busy"), "the sink: it is too busy");
  EXPECT_EQ(report.Unanswered(kSink), "the sink: it is too busy");
  EXPECT_EQ(report.Known(""), "");
}

TEST(WaitReport, ACallThatLastsIsNoWaitWhileOthersAdvance) {
  WaitReport report;
  EXPECT_EQ(report.Advanced(), std::nullopt);
  EXPECT_EQ(report.Looked(kSink), "");
  EXPECT_EQ(report.Looked(kSink), kSink) << "none has advanced since";
}

}  // namespace
}  // namespace muster::work
