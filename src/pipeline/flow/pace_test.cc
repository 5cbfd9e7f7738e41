#include "pipeline/flow/pace.h"

#include <gtest/gtest.h>

#include <thread>

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

TEST(Pace, AnOverloadedServerGetsHalfAsMuch) {
  Pace pace(RealEnv());
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(pace.Begin({}));
  pace.Overloaded();
  EXPECT_EQ(pace.limit(), 4);
  for (int i = 0; i < 7; ++i) pace.Overloaded();
  EXPECT_EQ(pace.limit(), 1);
}

TEST(Pace, WhatGoesWellIsDoneMoreOften) {
  Pace pace(RealEnv());
  ASSERT_TRUE(pace.Begin({}));
  pace.Overloaded();
  const int slow = pace.limit();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(pace.Begin({}));
    pace.Accepted();
  }
  EXPECT_GT(pace.limit(), slow + 5);
}

TEST(Pace, WhoMustWaitWaitsForAnothersEnd) {
  Pace pace(RealEnv());
  ASSERT_TRUE(pace.Begin({}));
  pace.Overloaded();
  ASSERT_TRUE(pace.Begin({}));
  bool began = false;
  std::jthread second([&] { began = pace.Begin({}); });
  pace.Failed();
  second.join();
  EXPECT_TRUE(began);
}

TEST(Pace, PatienceEndsTheWaiting) {
  Pace pace(RealEnv());
  ASSERT_TRUE(pace.Begin({}));
  pace.Overloaded();
  ASSERT_TRUE(pace.Begin({}));
  EXPECT_FALSE(pace.Begin({.deadline = RealEnv().MonoNow() + 1ms}));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(pace.Begin({.stop = stop.get_token()}));
}

}  // namespace
}  // namespace muster::pipeline
