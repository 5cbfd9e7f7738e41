#include "core/decimal.h"

#include <gtest/gtest.h>

#include <random>

#include "core/number.h"

namespace muster {
namespace {

TEST(Decimal, ParsesWhatANumberParses) {
  for (const char* text : {"0", "-0", "7", "-42", "1.5", ".5", "-.5", "5.", "007", "1e3", "1E+3",
                           "1e-3", "0.0e9", "-12.50e007"}) {
    EXPECT_TRUE(Decimal::Parse(text)) << text;
    EXPECT_TRUE(ParseNumber<double>(text)) << text;
  }
  for (const char* text : {"", "-", ".", "-.", "e1", ".e1", "1e", "1e+", "1e1.5", "+1", " 1", "1 ",
                           "1,5", "--1", "0x10", "inf", "nan", "one", "1.2.3"}) {
    EXPECT_FALSE(Decimal::Parse(text)) << text;
    EXPECT_FALSE(ParseNumber<double>(text)) << text;
  }
}

TEST(Decimal, OrdersExactly) {
  const std::string nines(5000, '9');
  const std::vector<std::string> ascending = {
      "-1e999999999",
      "-" + nines,
      "-9007199254740993",
      "-9007199254740992",
      "-1.5",
      "-1",
      "-1e-400",
      "-1e-999999999",
      "0",
      "1e-999999999",
      "1e-400",
      "0.1",
      "0.10000000000000000000000000001",
      "1",
      "9.99",
      "10",
      "9007199254740992",
      "9007199254740992.0000000001",
      "9007199254740993",
      "18446744073709551615",
      "18446744073709551616",
      "1e400",
      nines,
      nines + ".1",
      "1e999999999",
      "1e9999999999999999999999999",
  };
  for (size_t a = 0; a < ascending.size(); ++a) {
    for (size_t b = 0; b < ascending.size(); ++b) {
      EXPECT_EQ(*Decimal::Parse(ascending[a]) <=> *Decimal::Parse(ascending[b]), a <=> b)
          << ascending[a].substr(0, 40) << " and " << ascending[b].substr(0, 40);
    }
  }
}

TEST(Decimal, TheSameNumberCanBeWrittenInManyWays) {
  for (const auto& [a, b] :
       {std::pair("0", "-0.00e7"), std::pair("1", "1.000"), std::pair("1200", "1.2e3"),
        std::pair("0.0012", "12E-4"), std::pair("-50", "-005.0e+1"), std::pair(".5", "0.50")}) {
    EXPECT_EQ(*Decimal::Parse(a), *Decimal::Parse(b)) << a << " and " << b;
    EXPECT_EQ(*Decimal::Parse(a) <=> *Decimal::Parse(b), std::strong_ordering::equal) << a;
  }
}

// Where doubles are exact, they are the judge.
TEST(Decimal, OrdersSmallNumbersAsDoublesDo) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same numbers each time
  const auto number = [&] {
    const int value = static_cast<int>(random() % 4001) - 2000;
    switch (random() % 3) {
      case 0:
        return std::to_string(value);
      case 1:
        return std::to_string(value) + (random() % 2 == 0 ? ".25" : ".500");
      default:
        return std::to_string(value) + "e" + std::to_string(random() % 5);
    }
  };
  for (int i = 0; i < 20000; ++i) {
    const std::string a = number();
    const std::string b = number();
    ASSERT_TRUE((*Decimal::Parse(a) <=> *Decimal::Parse(b)) ==
                (*ParseNumber<double>(a) <=> *ParseNumber<double>(b)))
        << a << " and " << b;
  }
}

}  // namespace
}  // namespace muster
