#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <variant>

#include "muster/result.h"

namespace muster {

enum class Level { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };

// Says which events are logged (from `level` up) and how. Process-wide; call it before there are
// threads. Until then warnings and errors are logged as text.
void SetLogging(Level level, LogFormat format);

// "debug", "info", "warning", "error" or "off".
Result<Level> ParseLevel(std::string_view name);

// One named value of an event. It only refers to its text: for use inside a call of Log.
struct LogField {
  std::string_view key;
  std::variant<bool, int64_t, double, std::string_view> value;

  template <class T>
  LogField(std::string_view field_key, const T& field_value) : key(field_key) {
    if constexpr (std::same_as<T, bool>) {
      value = field_value;
    } else if constexpr (std::integral<T>) {
      value = static_cast<int64_t>(field_value);
    } else if constexpr (std::floating_point<T>) {
      value = static_cast<double>(field_value);
    } else {
      value = std::string_view(field_value);
    }
  }
};

// Writes one line to stderr, if the level is on; when it is off, that costs a comparison. The
// message says what happened in fixed words, the fields say to what:
//
//   Log(Level::kInfo, "claimed", {{"item", record.key}, {"epoch", record.epoch}});
//
// Values pass through Redact. Safe from any thread; lines never mix.
void Log(Level level, std::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace muster
