// Integers, unsigned integers and floats are one JSON type: how they convert and compare.
#include <algorithm>
#include <cmath>
#include <compare>

#include "muster/json.h"

namespace muster {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;
constexpr double kTwoTo64 = 18446744073709551616.0;

// As a double, an integer beyond 2^53 would be rounded. `least` and `beyond` are the type's range.
template <class T>
std::partial_ordering OrderOf(T integer, double number, double least, double beyond) {
  if (std::isnan(number)) return std::partial_ordering::unordered;
  if (number >= beyond) return std::partial_ordering::less;
  if (number < least) return std::partial_ordering::greater;
  const double whole = std::trunc(number);
  const std::partial_ordering order = integer <=> static_cast<T>(whole);
  return std::is_eq(order) ? 0.0 <=> number - whole : order;
}

[[noreturn]] void ThrowNotANumber(const Json& json) {
  throw Json::Exception(std::string("type must be number, but is ") + json.type_name());
}

}  // namespace

double Json::GetDouble() const {
  switch (type_) {
    case Type::kInteger:
      return static_cast<double>(integer_);
    case Type::kUnsigned:
      return static_cast<double>(unsigned_);
    case Type::kFloat:
      return float_;
    case Type::kBoolean:
      return boolean_ ? 1 : 0;
    default:
      ThrowNotANumber(*this);
  }
}

uint64_t Json::GetUnsigned() const {
  switch (type_) {
    case Type::kInteger:
      return static_cast<uint64_t>(integer_);
    case Type::kUnsigned:
      return unsigned_;
    case Type::kFloat:
      if (std::isnan(float_) || float_ <= 0) return 0;
      return float_ < kTwoTo64 ? static_cast<uint64_t>(float_) : UINT64_MAX;
    case Type::kBoolean:
      return boolean_ ? 1 : 0;
    default:
      ThrowNotANumber(*this);
  }
}

int64_t Json::GetInteger(int64_t least, int64_t most) const {
  int64_t value = 0;
  switch (type_) {
    case Type::kInteger:
      value = integer_;
      break;
    case Type::kUnsigned:
      value = unsigned_ > INT64_MAX ? INT64_MAX : static_cast<int64_t>(unsigned_);
      break;
    case Type::kFloat:
      if (float_ >= kTwoTo63) {
        value = INT64_MAX;
      } else if (float_ < -kTwoTo63) {
        value = INT64_MIN;
      } else if (!std::isnan(float_)) {
        value = static_cast<int64_t>(float_);
      }
      break;
    case Type::kBoolean:
      value = boolean_ ? 1 : 0;
      break;
    default:
      ThrowNotANumber(*this);
  }
  return std::clamp(value, least, most);
}

std::partial_ordering Json::Order(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_number_float() && b.is_number_float()) return a.float_ <=> b.float_;
    if (a.is_number_float()) {
      const std::partial_ordering other_way = Order(b, a);
      if (std::is_lt(other_way)) return std::partial_ordering::greater;
      return std::is_gt(other_way) ? std::partial_ordering::less : other_way;
    }
    if (b.is_number_float()) {
      return a.type_ == Type::kUnsigned ? OrderOf(a.unsigned_, b.float_, 0, kTwoTo64)
                                        : OrderOf(a.integer_, b.float_, -kTwoTo63, kTwoTo63);
    }
    const bool a_is_negative = a.type_ == Type::kInteger && a.integer_ < 0;
    const bool b_is_negative = b.type_ == Type::kInteger && b.integer_ < 0;
    if (a_is_negative != b_is_negative) return b_is_negative <=> a_is_negative;
    return a.unsigned_ <=> b.unsigned_;
  }
  if (a.is_string() && b.is_string()) return *a.string_ <=> *b.string_;
  return a.type_ <=> b.type_;
}

bool Json::Equal(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_number_float() || b.is_number_float()) return std::is_eq(Order(a, b));
    // The bits are equal; what differs is whether the top bit is a sign.
    return a.integer_ == b.integer_ && (a.type_ == b.type_ || a.integer_ >= 0);
  }
  if (a.type_ != b.type_) return false;
  switch (a.type_) {
    case Type::kNull:
      return true;
    case Type::kBoolean:
      return a.boolean_ == b.boolean_;
    case Type::kString:
      return *a.string_ == *b.string_;
    case Type::kArray:
      return *a.array_ == *b.array_;
    case Type::kObject:
      return *a.object_ == *b.object_;
    case Type::kBinary:
      return *a.binary_ == *b.binary_;
    case Type::kInteger:
    case Type::kUnsigned:
    case Type::kFloat:
    case Type::kDiscarded:
      break;
  }
  return false;
}

}  // namespace muster
