#include "pipeline/snapshot/rebuilt_value.h"

#include <arpa/inet.h>

#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "core/json.h"
#include "core/utf8.h"

namespace muster::pipeline {
namespace {

using lucene::IndexedValue;

Error NotOfItsType() { return Error{Code::kIncompatible, "a value that is not of its type"}; }

// In doc values numbers are integers with the same order: negative ones have their bits inverted.
double SortableDouble(int64_t value) {
  const auto bits = static_cast<uint64_t>(value ^ ((value >> 63) & INT64_MAX));
  return std::bit_cast<double>(bits);
}

float SortableFloat(int64_t value) {
  const auto low = static_cast<int32_t>(value);
  return std::bit_cast<float>(static_cast<uint32_t>(low ^ ((low >> 31) & INT32_MAX)));
}

// The shortest text that reads as the same number, which shows that it is not an integer.
template <class T>
Status AppendFraction(T number, std::string& out) {
  if (!std::isfinite(number)) return NotOfItsType();
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  const std::string_view shortest(text.data(), static_cast<size_t>(end - text.data()));
  out += shortest;
  if (shortest.find_first_of(".e") == std::string_view::npos) out += ".0";
  return {};
}

// In UTC, with three or nine digits of a second.
Status AppendTime(int64_t ticks, bool is_nanos, std::string& out) {
  using std::chrono::days, std::chrono::seconds, std::chrono::sys_days;
  const int64_t per_second = is_nanos ? 1'000'000'000 : 1000;
  int64_t whole = ticks / per_second;
  int64_t rest = ticks % per_second;
  if (rest < 0) {
    rest += per_second;
    --whole;
  }
  constexpr int64_t kYear0 = -62'167'219'200;
  constexpr int64_t kYear10000 = 253'402'300'800;
  if (whole < kYear0 || whole >= kYear10000) {
    return Error{Code::kIncompatible, "a date beyond the years 0 to 9999"};
  }
  const auto day = std::chrono::floor<days>(seconds(whole));
  const std::chrono::year_month_day date{sys_days(day)};
  const int64_t in_day = whole - seconds(day).count();
  std::array<char, 64> text;
  const int length =
      std::snprintf(text.data(), text.size(),
                    is_nanos ? "\"%04d-%02u-%02uT%02d:%02d:%02d.%09lldZ\""
                             : "\"%04d-%02u-%02uT%02d:%02d:%02d.%03lldZ\"",
                    static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                    static_cast<unsigned>(date.day()), static_cast<int>(in_day / 3600),
                    static_cast<int>(in_day / 60 % 60), static_cast<int>(in_day % 60),
                    static_cast<long long>(rest));
  out.append(text.data(), static_cast<size_t>(length));
  return {};
}

// 16 bytes; of an IPv4 address the last four.
Status AppendAddress(std::string_view bytes, std::string& out) {
  constexpr std::string_view kVersion4("\0\0\0\0\0\0\0\0\0\0\xFF\xFF", 12);
  std::array<char, INET6_ADDRSTRLEN> text;
  if (bytes.size() != 16) return NotOfItsType();
  const bool is_4 = bytes.starts_with(kVersion4);
  if (inet_ntop(is_4 ? AF_INET : AF_INET6, bytes.data() + (is_4 ? kVersion4.size() : 0),
                text.data(), text.size()) == nullptr) {
    return NotOfItsType();
  }
  out.append("\"").append(text.data()).append("\"");
  return {};
}

Status AppendInteger(RebuiltType type, int64_t value, std::string& out) {
  switch (type) {
    case RebuiltType::kInteger:
    case RebuiltType::kEpochMillis:
      out += std::to_string(value);
      return {};
    case RebuiltType::kDouble:
      return AppendFraction(SortableDouble(value), out);
    case RebuiltType::kFloat:
      return AppendFraction(SortableFloat(value), out);
    case RebuiltType::kBoolean:
      if (value != 0 && value != 1) return NotOfItsType();
      out += value == 1 ? "true" : "false";
      return {};
    case RebuiltType::kDate:
    case RebuiltType::kDateNanos:
      return AppendTime(value, type == RebuiltType::kDateNanos, out);
    default:
      return NotOfItsType();
  }
}

Status AppendText(RebuiltType type, const std::string& value, std::string& out) {
  if (type == RebuiltType::kIp) return AppendAddress(value, out);
  if (type == RebuiltType::kBoolean && (value == "T" || value == "F")) {
    out += value == "T" ? "true" : "false";
    return {};
  }
  if (type != RebuiltType::kText || ValidUtf8Prefix(value) != value.size()) return NotOfItsType();
  AppendJsonString(out, value);
  return {};
}

}  // namespace

Status AppendRebuiltValue(const RebuiltField& field, const IndexedValue& value, std::string& out) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return AppendText(field.type, *text, out);
  }
  if (const auto* number = std::get_if<int64_t>(&value)) {
    return AppendInteger(field.type, *number, out);
  }
  const auto* single = std::get_if<float>(&value);
  if (single != nullptr && field.type == RebuiltType::kFloat) return AppendFraction(*single, out);
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr || field.type != RebuiltType::kDouble) return NotOfItsType();
  return AppendFraction(*number, out);
}

}  // namespace muster::pipeline
