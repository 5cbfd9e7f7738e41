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

// Sets which events are logged (`level` and above) and how. Process-wide; call it before starting
// threads. By default warnings and errors are logged as text.
void SetLogging(Level level, LogFormat format);

// "debug", "info", "warning", "error" or "off".
Result<Level> ParseLevel(std::string_view name);

// A named value of an event. Only refers to its text: for use within a Log call.
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

// Writes one line to stderr if the level is enabled; otherwise it costs a comparison. The message
// is fixed text saying what happened, the fields say to what:
//
//   Log(Level::kInfo, "claimed", {{"item", record.key}, {"epoch", record.epoch}});
//
// Values pass through Redact. Thread-safe; lines never interleave.
void Log(Level level, std::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace muster
