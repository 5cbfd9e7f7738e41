#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "core/json.h"
#include "muster/migrate.h"
#include "pipeline/flow/memory_source.h"

namespace muster::pipeline {
namespace {

class Kept final : public VerifyObserver {
 public:
  std::string state;
  Status Save(const std::function<std::string()>& text) override {
    state = text();
    return {};
  }
};

class VerifyStateTest : public ::testing::Test {
 protected:
  VerifyStateTest() {
    for (int i = 0; i < 5; ++i) {
      source_.Add("c", {.id = std::to_string(i), .body = R"({"n":1})"});
    }
    source_.Add("c", {.id = "bad\xff", .body = "", .defect = "no JSON"});
    EXPECT_TRUE(ContinueFrom(""));
  }

  Result<VerifyReport> ContinueFrom(const std::string& state) {
    Kept kept;
    auto report = VerifyCollection({source_, "c"}, {source_, "c"}, {.state = state}, kept, {});
    if (!kept.state.empty()) state_ = kept.state;
    return report;
  }

  // With a member of it replaced.
  std::string With(const std::string& path, const Json& value) {
    Json json = Json::parse(state_);
    Json* at = &json;
    std::istringstream names(path);
    for (std::string name; std::getline(names, name, '/');) {
      at = at->is_array() ? &(*at)[static_cast<size_t>(std::stoi(name))] : &(*at)[name];
    }
    *at = value;
    return ToJsonText(json);
  }

  MemorySource source_{3};
  std::string state_;
};

TEST_F(VerifyStateTest, HasTheVersionOfItsFormat) {
  EXPECT_EQ(Json::parse(state_)["v"], 1);
  const auto newer = ContinueFrom(With("v", 2));
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, Code::kInvalid);
  EXPECT_NE(newer.error().message.find("newer version"), std::string::npos);
  // As it was before it had one.
  Json json = Json::parse(state_);
  json.erase("v");
  json["format"] = 1;
  const auto former = ContinueFrom(ToJsonText(json));
  ASSERT_TRUE(former) << former.error().ToString();
  EXPECT_EQ(former->Unreadable(), 2);
}

TEST_F(VerifyStateTest, DamagedOneIsRefused) {
  for (const std::string& state :
       {std::string("{}"), std::string("no JSON"), With("by_id", 1), With("source/done", nullptr),
        With("source/done/0/documents", "x"), With("source/done/0/begin", "%"),
        With("target/buckets/0", Json::array({4096, 1, 1, 1})),
        With("target/buckets/0", Json::array({0, 1, 1})),
        With("target/buckets/0/1", uint64_t{1} << 63), With("target/buckets/0/2", -1),
        With("source/unreadable/0", Json::array({"a"})), With("source/unreadable/0/1", "a")}) {
    const auto report = ContinueFrom(state);
    ASSERT_FALSE(report) << state;
    EXPECT_EQ(report.error().code, Code::kCorrupt) << state;
  }
}

}  // namespace
}  // namespace muster::pipeline
