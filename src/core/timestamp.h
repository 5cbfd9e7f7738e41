#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/env.h"

namespace muster {

// Parses a time in the format of the language, RFC 3339 with a capital T and Z or an offset:
// "2016-03-14T01:59:00.123Z". None: not such a time.
struct Timestamp {
  int64_t seconds = 0;
  int64_t nanos = 0;

  auto operator<=>(const Timestamp&) const = default;
  WallTime ToWallTime() const;
};
std::optional<Timestamp> ParseTimestamp(std::string_view text);

// "2016-03-14T01:59:00.123Z".
std::string FormatTimestamp(WallTime time);

// "5 s", "12 min", "3 h".
std::string FormatSpan(milliseconds span);

}  // namespace muster
