#include "pipeline/table/number_rule.h"

#include <array>
#include <charconv>
#include <limits>
#include <system_error>

#include "core/decimal.h"
#include "core/number.h"

namespace muster::pipeline {
namespace {

// Digits that every float of the type keeps, if there is no exponent.
constexpr size_t kFloatDigits = 6;
constexpr size_t kDoubleDigits = 15;

// Databases accept these around a number in a string.
std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
  if (text.starts_with('+')) text.remove_prefix(1);
  return text;
}

// Whether the number is how the closest float is printed: with as few digits as identify it, or
// with as many as always do (0.10000000000000001 is 0.1). True of what the database refuses: a
// number out of range.
template <class T>
bool KeepsAs(std::string_view text) {
  T value{};
  const auto [stopped, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || stopped != text.data() + text.size()) return true;
  std::array<char, 64> buffer;
  const auto printed = [&](auto... format) {
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format...);
    return std::string_view(buffer.data(), static_cast<size_t>(end.ptr - buffer.data()));
  };
  if (printed() == text) return true;
  const auto written = Decimal::Parse(text);
  if (!written || written == Decimal::Parse(printed())) return true;
  constexpr int kMostDigits = std::numeric_limits<T>::max_digits10;
  return written == Decimal::Parse(printed(std::chars_format::scientific, kMostDigits - 1));
}

}  // namespace

NumberRule NumberRule::OfPgType(std::string_view base, const std::string& type) {
  if (base.starts_with('_')) base.remove_prefix(1);  // an array
  if (base == "float4") return Float();
  if (base == "float8") return Double();
  if (base != "numeric") return {};
  const size_t open = type.find('(');
  const size_t comma = type.find(',', open);
  if (open == std::string::npos || comma == std::string::npos) return {};
  const std::string scale = type.substr(comma + 1, type.find(')', comma) - comma - 1);
  const auto number = ParseNumber<int>(scale);
  return number ? Scale(*number) : NumberRule();
}

bool NumberRule::Keeps(std::string_view text) const {
  if (kind_ == Kind::kAny) return true;
  text = Trimmed(text);
  const size_t sure = kind_ == Kind::kFloat ? kFloatDigits : kDoubleDigits;
  if (kind_ != Kind::kScale && text.size() <= sure &&
      text.find_first_of("eE") == std::string_view::npos) {
    return true;
  }
  if (kind_ == Kind::kFloat) return KeepsAs<float>(text);
  if (kind_ == Kind::kDouble) return KeepsAs<double>(text);
  const auto written = Decimal::Parse(text);
  const auto last = written ? written->LastPlace() : std::nullopt;
  return !last || *last >= -scale_;
}

}  // namespace muster::pipeline
