#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::pipeline {

// Which numbers a column keeps: those that are the same number when they are read back. Of 0.1, a
// column of 64-bit floats keeps the closest float, which is printed as 0.1, so it keeps 0.1, and
// 0.10000000000000001, as which some programs print that float; it does not keep 9007199254740993.
class NumberRule {
 public:
  NumberRule() = default;  // all of them, as far as is known
  static NumberRule Float() { return NumberRule(Kind::kFloat, 0); }
  static NumberRule Double() { return NumberRule(Kind::kDouble, 0); }
  // Digits down to `scale` places behind the decimal point; negative: before it.
  static NumberRule Scale(int scale) { return NumberRule(Kind::kScale, scale); }

  // Of a PostgreSQL type as it prints it, "numeric(10,2)" or "real[]", whose plain name is `base`.
  // Numbers that the server itself refuses need no rule.
  static NumberRule OfPgType(std::string_view base, const std::string& type);

  bool KeepsAll() const { return kind_ == Kind::kAny; }
  // True of a text that is not a number.
  bool Keeps(std::string_view text) const;

 private:
  enum class Kind : uint8_t { kAny, kFloat, kDouble, kScale };
  NumberRule(Kind kind, int scale) : kind_(kind), scale_(scale) {}

  Kind kind_ = Kind::kAny;
  int scale_ = 0;
};

}  // namespace muster::pipeline
