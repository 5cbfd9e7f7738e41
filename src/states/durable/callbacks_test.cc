#include "states/durable/callbacks.h"

#include <gtest/gtest.h>

#include "core/virtual_env.h"
#include "states/durable/flow_record.h"
#include "store/backends.h"

namespace muster::states {
namespace {

class CallbacksTest : public ::testing::Test {
 protected:
  void Put(const std::string& key, const std::string& body) {
    const store::Record record{.kind = kCallbackKind, .queue = "none", .key = key, .body = body};
    ASSERT_TRUE(store_->Write({{store::Change::Put(record, store::Due::Never())}}));
  }

  VirtualEnv env_;
  const std::unique_ptr<store::Store> store_ = store::NewMemoryStore(env_);
};

TEST_F(CallbacksTest, NullIsAnOutput) {
  EXPECT_FALSE(FindAnswer(*store_, "t").value());
  Put("t", R"({"output":null,"v":1})");
  const auto answer = FindAnswer(*store_, "t").value();
  ASSERT_TRUE(answer && answer->output);
  EXPECT_TRUE(answer->output->is_null());
}

TEST_F(CallbacksTest, AnswersOfVersionZeroAreRead) {
  Put("t", R"({"error":"E","cause":"C"})");
  const auto answer = FindAnswer(*store_, "t").value();
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->output);
  EXPECT_EQ(answer->error, "E");
  EXPECT_EQ(answer->cause, "C");
}

// A heartbeat that is taken for none would time out a task that is alive.
TEST_F(CallbacksTest, WhatANewerVersionWroteIsRefused) {
  Put("t", R"({"output":1,"v":2})");
  Put("t#heartbeat", R"({"v":2,"time":"now"})");
  EXPECT_EQ(FindAnswer(*store_, "t").error().code, Code::kInvalid);
  EXPECT_EQ(FindBeat(*store_, "t").error().code, Code::kInvalid);
}

TEST_F(CallbacksTest, DamageIsReported) {
  Put("t", R"({"error":7,"v":1})");
  Put("t#heartbeat", "[]");
  EXPECT_EQ(FindAnswer(*store_, "t").error().code, Code::kCorrupt);
  EXPECT_EQ(FindBeat(*store_, "t").error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace muster::states
