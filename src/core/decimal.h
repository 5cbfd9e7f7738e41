#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

// A decimal number of any length, compared exactly: 9007199254740993 is above 9007199254740992,
// 1e400 above 1e399, and 1.0 equals 1. Takes no more memory than its text, whatever the exponent.
class Decimal {
 public:
  // The whole text, in the form that ParseNumber<double> takes: "-1.5e3"; none if it is anything
  // else. Exponents beyond 10^17 count as 10^17.
  static std::optional<Decimal> Parse(std::string_view text);

  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal& other) const = default;

  // The power of ten that its last digit other than 0 counts: -2 of 1.250, 3 of 7000; none of 0.
  std::optional<int64_t> LastPlace() const;

 private:
  bool negative_ = false;
  int64_t exponent_ = 0;  // the value is 0.DIGITS times ten to this power
  std::string digits_;    // without zeros at either end; empty for 0, which has no sign
};

}  // namespace muster
