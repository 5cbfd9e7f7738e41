#include "script/js_numbers.h"

#include <quickjs.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace muster::script {
namespace {

constexpr double kMaxSafeInteger = 9007199254740991;  // 2^53 - 1
constexpr size_t kSafeDigits = 15;                    // any integer of this many digits is below it

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
  return !JS_IsException(*big_int_);
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
  if (written == "-0" || written.find_first_of(".eE") != std::string_view::npos) {
    return Literal(context, value, written);
  }
  if (size <= kSafeDigits || std::abs(value) <= kMaxSafeInteger) {
    return JS_NewFloat64(context, value);
  }
  JSValue digits = JS_NewStringLen(context, text, size);
  if (JS_IsException(digits)) return digits;
  const JSValue integer = JS_Call(context, *big_int_, JS_UNDEFINED, 1, &digits);
  JS_FreeValue(context, digits);
  return integer;
}

JSValue JsNumberCodec::Print(JSContext* context, JSValue number) const {
  if (JS_IsBigInt(number)) {
    const JSValue text = mode_ == JsNumbers::kExact
                             ? JS_ToString(context, number)
                             : JS_ThrowTypeError(context, "BigInt are forbidden in JSON.stringify");
    JS_FreeValue(context, number);
    return text;
  }
  const double value = JS_VALUE_GET_FLOAT64(number);
  if (mode_ == JsNumbers::kExact) {
    if (const auto text = TextOf(number)) {
      return JS_NewStringLen(context, text->data(), text->size());
    }
    if (!std::isfinite(value)) {
      return JS_ThrowRangeError(context, "the script computed %s, which JSON cannot represent",
                                std::isnan(value) ? "NaN" : "Infinity");
    }
    if (std::abs(value) > kMaxSafeInteger) {
      return JS_ThrowRangeError(
          context, "the script computed %g, but numbers beyond 2^53 are rounded: use BigInt",
          value);
    }
  }
  return std::isfinite(value) ? number : JS_NULL;
}

JSValue JsNumberCodec::Literal(JSContext* context, double value, std::string_view text) {
  if (bytes_.size() + literals_.size() * sizeof(Written) > max_bytes_) {
    return JS_ThrowRangeError(context, "too many numbers");
  }
  const auto name = first_ + static_cast<uint32_t>(literals_.size());
  literals_.push_back({value, bytes_.size(), text.size()});
  bytes_ += text;
  JSValue number = JS_NewFloat64(context, value);
  static_assert(sizeof number.tag == sizeof(uint64_t));
  number.tag = static_cast<int64_t>(uint64_t{name} << 32U | static_cast<uint64_t>(number.tag));
  return number;
}

std::optional<std::string_view> JsNumberCodec::TextOf(const JSValue& number) const {
  const uint32_t index = static_cast<uint32_t>(static_cast<uint64_t>(number.tag) >> 32U) - first_;
  if (index >= literals_.size()) return std::nullopt;
  const Written& written = literals_[index];
  // If the engine ever modified a value in place, it is a different number.
  if (std::bit_cast<uint64_t>(written.value) !=
      std::bit_cast<uint64_t>(JS_VALUE_GET_FLOAT64(number))) {
    return std::nullopt;
  }
  return std::string_view(bytes_).substr(written.begin, written.size);
}

}  // namespace muster::script
