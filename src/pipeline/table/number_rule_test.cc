#include "pipeline/table/number_rule.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::pipeline {
namespace {

TEST(NumberRule, DoublesKeepWhatTheyPrintAgain) {
  const NumberRule rule = NumberRule::Double();
  for (const char* number : {"0",
                             "-0",
                             "0.1",
                             "1.50",
                             "123456789.012345",
                             "0.30000000000000004",
                             "0.10000000000000001",
                             "-0.10000000000000001",
                             "1.1000000000000001e2",
                             "0.29999999999999999",
                             "9007199254740992",
                             "9007199254740994",
                             "1e300",
                             "1E+22",
                             "100000000000000000000",
                             "5e-324",
                             "0.1e1",
                             "1.7976931348623157e308",
                             " 0.1 ",
                             "+0.1",
                             "NaN",
                             "Infinity",
                             "",
                             "text",
                             "12 34",
                             "true"}) {
    EXPECT_TRUE(rule.Keeps(number)) << number;
  }
  for (const char* number :
       {"9007199254740993", "-9007199254740993", "0.1234567890123456789", "12345678901234567890",
        "1.00000000000000000001", "99999999999999999999", "0.300000000000000041",
        "0.100000000000000005", "12345678901234567", "90071992547409930",
        "1.2345678901234567891e-5", "+9007199254740993", " 9007199254740993 "}) {
    EXPECT_FALSE(rule.Keeps(number)) << number;
  }
}

TEST(NumberRule, FloatsKeepLess) {
  const NumberRule rule = NumberRule::Float();
  for (const char* number :
       {"0.1", "16777216", "3.1415927", "3.14159274", "0.100000001", "1e38", "123456", "-1.5"}) {
    EXPECT_TRUE(rule.Keeps(number)) << number;
  }
  for (const char* number :
       {"16777217", "3.14159265", "0.100000002", "0.123456789", "1234567.89"}) {
    EXPECT_FALSE(rule.Keeps(number)) << number;
  }
}

TEST(NumberRule, ScaleLimitsTheLastDigit) {
  const NumberRule cents = NumberRule::Scale(2);
  for (const char* number :
       {"0", "1", "1.25", "1.2500", "-99999999999999999999.99", "125e-2", "x"}) {
    EXPECT_TRUE(cents.Keeps(number)) << number;
  }
  for (const char* number : {"1.255", "0.001", "1255e-3", "-0.005"}) {
    EXPECT_FALSE(cents.Keeps(number)) << number;
  }
  const NumberRule thousands = NumberRule::Scale(-3);
  EXPECT_TRUE(thousands.Keeps("7000"));
  EXPECT_TRUE(thousands.Keeps("7e3"));
  EXPECT_FALSE(thousands.Keeps("7100"));
}

TEST(NumberRule, FollowsPostgresTypes) {
  const auto keeps = [](const char* base, const std::string& type, const char* number) {
    return NumberRule::OfPgType(base, type).Keeps(number);
  };
  EXPECT_FALSE(keeps("float8", "double precision", "9007199254740993"));
  EXPECT_FALSE(keeps("float4", "real", "16777217"));
  EXPECT_FALSE(keeps("_float8", "double precision[]", "9007199254740993"));
  EXPECT_FALSE(keeps("numeric", "numeric(10,2)", "1.005"));
  EXPECT_FALSE(keeps("_numeric", "numeric(10,2)[]", "1.005"));
  EXPECT_FALSE(keeps("numeric", "numeric(10,0)", "1.5"));
  EXPECT_FALSE(keeps("numeric", "numeric(2,-3)", "1500"));
  EXPECT_TRUE(keeps("numeric", "numeric", "1.00000000000000000001"));
  EXPECT_TRUE(keeps("int8", "bigint", "9007199254740993"));
  EXPECT_TRUE(keeps("text", "text", "0.1234567890123456789"));
  EXPECT_TRUE(NumberRule::OfPgType("text", "text").KeepsAll());
}

}  // namespace
}  // namespace muster::pipeline
