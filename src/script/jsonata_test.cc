#include "script/jsonata.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "core/virtual_env.h"

namespace muster::script {
namespace {

using std::chrono::milliseconds;

class JsonataTest : public testing::Test {
 protected:
  // JSON, "undefined", or "error: ...".
  std::string Say(const std::string& expression, const Jsonata::Bindings& bindings = {}) {
    const auto value = jsonata_.Evaluate(expression, bindings);
    if (!value) return "error: " + value.error().ToString();
    return *value ? ToJsonText(**value) : "undefined";
  }

  VirtualEnv env_{WallTime(milliseconds(1'500'000'000'123))};
  Jsonata jsonata_{env_};
};

TEST_F(JsonataTest, MatchesTheTable) {
  std::ifstream table(MUSTER_JSONATA_CASES);
  ASSERT_TRUE(table) << MUSTER_JSONATA_CASES;
  int cases = 0;
  for (std::string line; std::getline(table, line); ++cases) {
    const Json test_case = Json::parse(line);
    SCOPED_TRACE(line);
    Jsonata::Bindings bindings;
    for (const char* name : {"states", "x"}) {
      if (test_case.contains(name)) bindings.emplace_back(name, &test_case[name]);
    }
    const auto value = jsonata_.Evaluate(test_case["expression"], bindings);
    if (test_case.contains("error") || test_case.contains("function")) {
      const bool function = test_case.contains("function");
      const std::string says = test_case.value("error", "the value is a function");
      EXPECT_FALSE(value);
      if (value) continue;
      EXPECT_EQ(value.error().code, function ? Code::kIncompatible : Code::kInvalid);
      EXPECT_EQ(value.error().message.find(says), 0U) << value.error().message;
      continue;
    }
    EXPECT_TRUE(value) << value.error().ToString();
    if (!value) continue;
    EXPECT_EQ(value->has_value(), !test_case.contains("undefined"));
    if (*value) {
      EXPECT_EQ(**value, test_case.value("value", Json()));
    }
  }
  EXPECT_GT(cases, 50);
}

TEST_F(JsonataTest, PlainNamesReferToTheInput) {
  const Json input = {{"prices", {1, 2, 3}}};
  const auto value = jsonata_.Evaluate("$sum(prices)", {}, &input);
  ASSERT_TRUE(value) << value.error().ToString();
  EXPECT_EQ(*value, Json(6));
}

TEST_F(JsonataTest, IntegersThatAreOnlyMovedKeepTheirDigits) {
  const Json states = ParseJson(R"({"input":{"id":9007199254740993,"n":-9223372036854775807,
      "list":[{"id":18446744073709551615},{"id":9007199254740993}]}})",
                                "states")
                          .value();
  const auto say = [&](const std::string& expression) {
    return Say(expression, {{"states", &states}});
  };
  EXPECT_EQ(say("$states.input.id"), "9007199254740993");
  EXPECT_EQ(say("$states.input"), ToJsonText(states["input"]));
  EXPECT_EQ(say("$states.input.list.id"), "[18446744073709551615,9007199254740993]");
  EXPECT_EQ(
      say("$map($states.input.list, function($x) { {'a': [$x.id], 'b': $states.input.n} })[0]"),
      R"({"a":[18446744073709551615],"b":-9223372036854775807})");
  EXPECT_EQ(say("($x := $states.input.id; $merge([{'y': $x}, {'z': 1}]))"),
            R"({"y":9007199254740993,"z":1})");
  EXPECT_EQ(say("$parse('[9007199254740993, 1.0]')"), "[9007199254740993,1]");
  // As in AWS.
  EXPECT_EQ(say("$states.input.id - 1"), "9007199254740991");
}

TEST_F(JsonataTest, CheckDoesNotEvaluate) {
  EXPECT_TRUE(jsonata_.Check("$missing.a + 1 ~> $f"));
  const auto checked = jsonata_.Check("$sum(1, ");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::kInvalid);
  EXPECT_EQ(checked.error().message,
            "S0203: Expected \")\" before end of expression (at character 8)");
  EXPECT_EQ(jsonata_.Check("a ]").error().message, "S0201: Syntax error: \"]\" (at character 3)");
}

TEST_F(JsonataTest, RandomnessComesFromTheEnv) {
  VirtualEnv env;
  Jsonata twin(env);
  for (const char* expression : {"$random()", "$uuid()", "$shuffle([1..20])"}) {
    const auto first = jsonata_.Evaluate(expression, {});
    const auto second = twin.Evaluate(expression, {});
    ASSERT_TRUE(first && second) << expression;
    EXPECT_EQ(*first, *second) << expression;
  }
}

TEST_F(JsonataTest, EndlessExpressionIsStoppedAndTheNextIsEvaluated) {
  Jsonata strict(env_, {.time = milliseconds(2'000), .memory_bytes = size_t{16} << 20});
  for (const char* expression : {
           "($f := function() { $f() }; $f())",
           "$replace('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab', /^(a+)+$/, '')",
       }) {
    const auto value = strict.Evaluate(expression, {});
    ASSERT_FALSE(value) << expression;
    EXPECT_EQ(value.error().message, "JSONata: stopped after 2000 ms") << expression;
    const auto next = strict.Evaluate("1 + 1", {});
    ASSERT_TRUE(next) << next.error().ToString();
    EXPECT_EQ(*next, Json(2));
  }
}

TEST_F(JsonataTest, ExpressionOverTheMemoryLimitIsStoppedAndTheNextIsEvaluated) {
  Jsonata strict(env_, {.time = milliseconds(20'000), .memory_bytes = size_t{16} << 20});
  const auto value = strict.Evaluate("[1..9999999]", {});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().message, "JSONata: needs more than the 16384 KiB of memory it may have");
  const auto next = strict.Evaluate("1 + 1", {});
  ASSERT_TRUE(next) << next.error().ToString();
  EXPECT_EQ(*next, Json(2));
}

TEST_F(JsonataTest, InfiniteRecursionIsAnError) {
  EXPECT_NE(Say("($f := function($n) {1 + $f($n)}; $f(1))").find("error: "), std::string::npos);
  EXPECT_EQ(Say("1 + 1"), "2");
}

TEST_F(JsonataTest, VariablesDoNotLeakIntoTheNextEvaluation) {
  const Json one = 1;
  EXPECT_EQ(Say("$x", {{"x", &one}}), "1");
  EXPECT_EQ(Say("$x"), "undefined");
  EXPECT_EQ(Say("$y := 2"), "2");
  EXPECT_EQ(Say("$y"), "undefined");
}

TEST_F(JsonataTest, CacheOfExpressionsIsBounded) {
  for (int i = 0; i < 2'500; ++i) {
    ASSERT_EQ(Say(std::to_string(i) + " + 1"), std::to_string(i + 1));
  }
}

TEST_F(JsonataTest, ThreadsEvaluateAtTheSameTime) {
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const Json number = t * 1000 + i;
        const auto value = jsonata_.Evaluate("$n * 2", {{"n", &number}});
        if (value && *value == Json(2 * (t * 1000 + i))) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

}  // namespace
}  // namespace muster::script
