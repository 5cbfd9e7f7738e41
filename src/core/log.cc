#include "core/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <string>

#include "core/json.h"
#include "core/secrets.h"

namespace muster {
namespace {

struct Logging {
  std::atomic<Level> level{Level::kWarning};
  std::atomic<LogFormat> format{LogFormat::kText};
  spdlog::logger logger{"muster", std::make_shared<spdlog::sinks::stderr_sink_mt>()};

  Logging() {
    logger.set_level(spdlog::level::trace);
    logger.flush_on(spdlog::level::trace);
    SetPattern();
  }

  void SetPattern() {
    logger.set_pattern(format == LogFormat::kJson
                           ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                           : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                       spdlog::pattern_time_type::utc);
  }
};

// Never destroyed: a thread may still log during exit.
Logging& TheLogging() {
  static auto* logging = new Logging;
  return *logging;
}

std::string Quote(std::string_view text) {
  std::string quoted;
  AppendJsonString(quoted, text);
  return quoted;
}

bool IsPlain(std::string_view text) {
  for (char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\x7f') return false;
  }
  return !text.empty();
}

std::string ValueText(const LogField& field, LogFormat format) {
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    std::string redacted = Redact(*text);
    return format == LogFormat::kText && IsPlain(redacted) ? redacted : Quote(redacted);
  }
  if (const auto* flag = std::get_if<bool>(&field.value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&field.value)) return std::to_string(*number);
  return ToJsonText(std::get<double>(field.value));
}

std::string Format(std::string_view message, std::initializer_list<LogField> fields,
                   LogFormat format) {
  std::string quoted = Quote(Redact(message));
  if (format == LogFormat::kJson) {
    std::string line = "\"message\":" + quoted;
    for (const LogField& field : fields) {
      line += "," + Quote(field.key) + ":" + ValueText(field, format);
    }
    return line;
  }
  // Escaped: a line break in a message must not look like another event.
  std::string line = quoted.substr(1, quoted.size() - 2);
  for (const LogField& field : fields) {
    line += " " + std::string(field.key) + "=" + ValueText(field, format);
  }
  return line;
}

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    default:
      return spdlog::level::err;
  }
}

}  // namespace

void SetLogging(Level level, LogFormat format) {
  Logging& logging = TheLogging();
  logging.level = level;
  logging.format = format;
  logging.SetPattern();
}

Result<Level> ParseLevel(std::string_view name) {
  if (name == "debug") return Level::kDebug;
  if (name == "info") return Level::kInfo;
  if (name == "warning") return Level::kWarning;
  if (name == "error") return Level::kError;
  if (name == "off") return Level::kOff;
  return Error{Code::kInvalid, "unknown log level", "use debug, info, warning, error or off"};
}

void Log(Level level, std::string_view message, std::initializer_list<LogField> fields) {
  Logging& logging = TheLogging();
  if (level < logging.level.load(std::memory_order_relaxed)) return;
  logging.logger.log(ToSpdlog(level), Format(message, fields, logging.format));
}

}  // namespace muster
