#include "core/decimal.h"

#include <algorithm>

namespace muster {
namespace {

constexpr int64_t kMaxExponent = 100'000'000'000'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Removes the digits that the text begins with, and returns them.
std::string_view TakeDigits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

// What follows the digits: nothing, or "e" with an exponent.
std::optional<int64_t> ExponentOf(std::string_view text) {
  if (text.empty()) return 0;
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string_view digits = TakeDigits(text);
  if (digits.empty() || !text.empty()) return std::nullopt;
  int64_t exponent = 0;
  for (const char digit : digits) {
    if (exponent < kMaxExponent) exponent = std::min(exponent * 10 + (digit - '0'), kMaxExponent);
  }
  return negative ? -exponent : exponent;
}

}  // namespace

std::optional<Decimal> Decimal::Parse(std::string_view text) {
  Decimal number;
  number.negative_ = text.starts_with('-');
  if (number.negative_) text.remove_prefix(1);
  std::string_view whole = TakeDigits(text);
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = TakeDigits(text);
  }
  if (whole.empty() && fraction.empty()) return std::nullopt;
  const auto exponent = ExponentOf(text);
  if (!exponent) return std::nullopt;
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
  number.exponent_ = *exponent + static_cast<int64_t>(whole.size());
  if (whole.empty()) {
    const size_t zeros = std::min(fraction.find_first_not_of('0'), fraction.size());
    fraction.remove_prefix(zeros);
    number.exponent_ -= static_cast<int64_t>(zeros);
  }
  fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  if (fraction.empty()) whole = whole.substr(0, whole.find_last_not_of('0') + 1);
  if (whole.empty() && fraction.empty()) return Decimal();
  number.digits_.reserve(whole.size() + fraction.size());
  number.digits_.append(whole).append(fraction);
  return number;
}

std::optional<int64_t> Decimal::LastPlace() const {
  if (digits_.empty()) return std::nullopt;
  return exponent_ - static_cast<int64_t>(digits_.size());
}

std::strong_ordering Decimal::operator<=>(const Decimal& other) const {
  const auto sign = [](const Decimal& number) {
    if (number.digits_.empty()) return 0;
    return number.negative_ ? -1 : 1;
  };
  const int own_sign = sign(*this);
  if (const int other_sign = sign(other); own_sign != other_sign) return own_sign <=> other_sign;
  const Decimal& a = own_sign < 0 ? other : *this;
  const Decimal& b = own_sign < 0 ? *this : other;
  if (a.exponent_ != b.exponent_) return a.exponent_ <=> b.exponent_;
  // Without zeros at their ends, digits compare as text.
  return a.digits_ <=> b.digits_;
}

}  // namespace muster
