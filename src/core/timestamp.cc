#include "core/timestamp.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace muster {
namespace {

using std::chrono::days;
using std::chrono::year_month_day;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<int> Digits(size_t count) {
    if (text_.size() < count) return {};
    int value = 0;
    for (size_t i = 0; i < count; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return {};
      value = value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(count);
    return value;
  }
  bool Take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool AtDigit() const { return !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; }
  bool End() const { return text_.empty(); }

 private:
  std::string_view text_;
};

}  // namespace

WallTime Timestamp::ToWallTime() const {
  return WallTime(std::chrono::seconds(seconds) + std::chrono::milliseconds(nanos / 1'000'000));
}

std::optional<Timestamp> ParseTimestamp(std::string_view text) {
  Reader reader(text);
  const auto year = reader.Digits(4);
  if (!year || !reader.Take('-')) return {};
  const auto month = reader.Digits(2);
  if (!month || !reader.Take('-')) return {};
  const auto day = reader.Digits(2);
  if (!day || !reader.Take('T')) return {};
  const auto hour = reader.Digits(2);
  if (!hour || !reader.Take(':')) return {};
  const auto minute = reader.Digits(2);
  if (!minute || !reader.Take(':')) return {};
  const auto second = reader.Digits(2);
  if (!second) return {};
  int64_t nanos = 0;
  if (reader.Take('.')) {
    int64_t unit = 100'000'000;
    if (!reader.AtDigit()) return {};
    for (; reader.AtDigit(); unit /= 10) nanos += unit * reader.Digits(1).value_or(0);
  }
  int64_t offset = 0;
  if (!reader.Take('Z')) {
    const int sign = reader.Take('-') ? -1 : (reader.Take('+') ? 1 : 0);
    if (sign == 0) return {};
    const auto hours = reader.Digits(2);
    if (!hours || !reader.Take(':')) return {};
    const auto minutes = reader.Digits(2);
    if (!minutes || *hours > 18 || *minutes > 59) return {};
    offset = sign * (*hours * 3600 + *minutes * 60);
  }
  const year_month_day date{std::chrono::year(*year),
                            std::chrono::month(static_cast<unsigned>(*month)),
                            std::chrono::day(static_cast<unsigned>(*day))};
  if (!reader.End() || !date.ok() || *hour > 23 || *minute > 59 || *second > 59) return {};
  const auto day_count = std::chrono::sys_days(date).time_since_epoch().count();
  return Timestamp{day_count * int64_t{86'400} + *hour * 3600 + *minute * 60 + *second - offset,
                   nanos};
}

std::string FormatTimestamp(WallTime time) {
  const auto day = std::chrono::floor<days>(time);
  const year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
      static_cast<int>(clock.subseconds().count()));
  return {text.data(), static_cast<size_t>(size)};
}

std::string FormatSpan(milliseconds span) {
  const int64_t seconds = std::max<int64_t>(0, (span.count() + 999) / 1000);
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min";
  return std::to_string(seconds / 3600) + " h";
}

}  // namespace muster
