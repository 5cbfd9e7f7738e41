#include "script/js_numbers.h"

#include <quickjs.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/decimal.h"
#include "core/number.h"

namespace muster::script {
namespace {

constexpr double kMaxSafeInteger = 9007199254740991;  // 2^53 - 1
constexpr size_t kSafeDigits = 15;                    // any integer of this many digits is below it

// The longest integer in exponent notation that becomes a BigInt.
constexpr int64_t kMaxDigits = 1'000;

// The digits of a number with a point or an exponent that is an integer, as 1e20; none: it is not,
// or too long.
std::optional<std::string> IntegerDigits(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  int64_t point = 0;
  if (e < text.size()) {
    std::string_view exponent = text.substr(e + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    const auto number = ParseNumber<int32_t>(exponent);
    if (!number) return std::nullopt;
    point = *number;
  }
  const std::string_view mantissa = text.substr(0, e);
  std::string digits(mantissa.substr(0, mantissa.find('.')));
  point += static_cast<int64_t>(digits.size());
  if (digits.size() < mantissa.size()) digits += mantissa.substr(digits.size() + 1);
  while (digits.ends_with('0')) digits.pop_back();
  if (point < static_cast<int64_t>(digits.size()) || point > kMaxDigits) return std::nullopt;
  digits.resize(static_cast<size_t>(point), '0');
  digits.erase(0, digits.find_first_not_of('0'));
  return (negative ? "-" : "") + digits;
}

double DoubleOf(const char* text, size_t size) {
  double value = 0;
  if (std::from_chars(text, text + size, value).ec == std::errc()) return value;
  return std::strtod(std::string(text, size).c_str(), nullptr);  // overflow or underflow
}

}  // namespace

JsNumberCodec::JsNumberCodec(JsNumbers mode, size_t max_bytes)
    : mode_(mode), max_bytes_(max_bytes), big_int_(new JSValue(JS_UNDEFINED)) {}

JsNumberCodec::~JsNumberCodec() = default;

bool JsNumberCodec::Start(JSContext* context) {
  const JSValue global = JS_GetGlobalObject(context);
  *big_int_ = JS_GetPropertyStr(context, global, "BigInt");
  JS_FreeValue(context, global);
  return !JS_IsException(*big_int_) && guarded_.Register(context);
}

void JsNumberCodec::End(JSContext* context) {
  JS_FreeValue(context, std::exchange(*big_int_, JS_UNDEFINED));
}

void JsNumberCodec::Clear() {
  first_ += static_cast<uint32_t>(literals_.size());
  literals_.clear();
  bytes_.clear();
}

JSValue JsNumberCodec::Read(JSContext* context, const char* text, size_t size) {
  const double value = DoubleOf(text, size);
  if (mode_ == JsNumbers::kFloats) return JS_NewFloat64(context, value);
  const std::string_view written(text, size);
  const bool is_plain = written != "-0" && written.find_first_of(".eE") == std::string_view::npos;
  if (is_plain && (size <= kSafeDigits || std::abs(value) <= kMaxSafeInteger)) {
    return JS_NewFloat64(context, value);
  }
  if (mode_ == JsNumbers::kMovedIntegers) {
    const JSValue number = JS_NewFloat64(context, value);
    return is_plain ? Literal(context, number, value, written) : number;
  }
  if (is_plain) return BigInt(context, written);
  if (std::abs(value) > kMaxSafeInteger) return Large(context, value, written);
  return Literal(context, JS_NewFloat64(context, value), value, written);
}

JSValue JsNumberCodec::Large(JSContext* context, double value, std::string_view text) {
  const auto digits = IntegerDigits(text);
  if (!digits) return guarded_.Make(context, text);
  const JSValue number = BigInt(context, *digits);
  return JS_IsException(number) ? number : Literal(context, number, value, text);
}

JSValue JsNumberCodec::BigInt(JSContext* context, std::string_view text) const {
  JSValue digits = JS_NewStringLen(context, text.data(), text.size());
  if (JS_IsException(digits)) return digits;
  const JSValue integer = JS_Call(context, *big_int_, JS_UNDEFINED, 1, &digits);
  JS_FreeValue(context, digits);
  return integer;
}

JSValue JsNumberCodec::Print(JSContext* context, JSValue number) const {
  if (JS_IsBigInt(number)) return PrintBigInt(context, number);
  if (const auto guarded = guarded_.TextOf(number)) {
    JS_FreeValue(context, number);
    return JS_NewStringLen(context, guarded->data(), guarded->size());
  }
  const double value = JS_VALUE_GET_FLOAT64(number);
  const Written* const written = WrittenOf(number);
  // If the engine ever modified a value in place, it is a different number.
  if (written != nullptr &&
      std::bit_cast<uint64_t>(written->value) == std::bit_cast<uint64_t>(value)) {
    const std::string_view text = TextOf(*written);
    return JS_NewStringLen(context, text.data(), text.size());
  }
  if (mode_ == JsNumbers::kExact) {
    if (!std::isfinite(value)) {
      return JS_ThrowRangeError(context, "the script computed %s, which JSON cannot represent",
                                std::isnan(value) ? "NaN" : "Infinity");
    }
    if (!Check(context, value)) return JS_EXCEPTION;
  }
  return std::isfinite(value) ? number : JS_NULL;
}

JSValue JsNumberCodec::PrintBigInt(JSContext* context, JSValue number) const {
  if (mode_ != JsNumbers::kExact) {
    JS_FreeValue(context, number);
    return JS_ThrowTypeError(context, "BigInt are forbidden in JSON.stringify");
  }
  const Written* const written = WrittenOf(number);
  const JSValue digits = JS_ToString(context, number);
  JS_FreeValue(context, number);
  if (JS_IsException(digits) || written == nullptr) return digits;
  size_t size = 0;
  const char* const bytes = JS_ToCStringLen(context, &size, digits);
  if (bytes == nullptr) {
    JS_FreeValue(context, digits);
    return JS_EXCEPTION;
  }
  const std::string_view text = TextOf(*written);
  const bool is_same = IntegerDigits(text) == std::string_view(bytes, size);
  JS_FreeCString(context, bytes);
  if (!is_same) return digits;
  JS_FreeValue(context, digits);
  return JS_NewStringLen(context, text.data(), text.size());
}

bool JsNumberCodec::IsSame(const JSValue& one, const JSValue& other) const {
  const auto text = guarded_.TextOf(one);
  const auto other_text = text ? guarded_.TextOf(other) : std::nullopt;
  return other_text &&
         (*text == *other_text || Decimal::Parse(*text) == Decimal::Parse(*other_text));
}

bool JsNumberCodec::Check(JSContext* context, double value) const {
  if (mode_ != JsNumbers::kExact || !(std::abs(value) > kMaxSafeInteger)) return true;
  JS_ThrowRangeError(
      context, "the script computed %g, but numbers beyond 2^53 are rounded: use BigInt", value);
  return false;
}

JSValue JsNumberCodec::Literal(JSContext* context, JSValue number, double value,
                               std::string_view text) {
  if (bytes_.size() + literals_.size() * sizeof(Written) > max_bytes_) {
    JS_FreeValue(context, number);
    return JS_ThrowRangeError(context, "too many numbers");
  }
  const auto name = first_ + static_cast<uint32_t>(literals_.size());
  literals_.push_back({value, bytes_.size(), text.size()});
  bytes_ += text;
  static_assert(sizeof number.tag == sizeof(uint64_t));
  const auto type = static_cast<uint32_t>(number.tag);  // negative for a BigInt
  number.tag = static_cast<int64_t>(uint64_t{name} << 32U | type);
  return number;
}

const JsNumberCodec::Written* JsNumberCodec::WrittenOf(const JSValue& number) const {
  const uint32_t index = static_cast<uint32_t>(static_cast<uint64_t>(number.tag) >> 32U) - first_;
  return index < literals_.size() ? &literals_[index] : nullptr;
}

std::string_view JsNumberCodec::TextOf(const Written& written) const {
  return std::string_view(bytes_).substr(written.begin, written.size);
}

JsShared& JsShared::Of(JSContext* context) {
  return *static_cast<JsShared*>(JS_GetContextOpaque(context));
}

}  // namespace muster::script

// cmake/patch_quickjs.cmake makes the engine call these.
extern "C" {
JSValue MusterReadJsonNumber(JSContext* context, const char* text, size_t size);
JSValue MusterPrintJsonNumber(JSContext* context, JSValue number);
int MusterIsNumber(JSContext* context, JSValueConst value);
int MusterIsSameNumber(JSContext* context, JSValueConst one, JSValueConst other);
int MusterCheckNumber(JSContext* context, double value);

JSValue MusterReadJsonNumber(JSContext* context, const char* text, size_t size) {
  return muster::script::JsShared::Of(context).numbers.Read(context, text, size);
}

JSValue MusterPrintJsonNumber(JSContext* context, JSValue number) {
  return muster::script::JsShared::Of(context).numbers.Print(context, number);
}

int MusterIsNumber(JSContext* context, JSValueConst value) {
  return muster::script::JsShared::Of(context).numbers.IsGuarded(value) ? 1 : 0;
}

int MusterIsSameNumber(JSContext* context, JSValueConst one, JSValueConst other) {
  if (JS_GetContextOpaque(context) == nullptr) return 0;
  return muster::script::JsShared::Of(context).numbers.IsSame(one, other) ? 1 : 0;
}

// Before there is a script there is nothing to check.
int MusterCheckNumber(JSContext* context, double value) {
  if (JS_GetContextOpaque(context) == nullptr) return 0;
  return muster::script::JsShared::Of(context).numbers.Check(context, value) ? 0 : -1;
}
}
