#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/json_fields.h"
#include "muster/result.h"

namespace muster {

// A durable format: its name in docs/internals/formats.md, and the newest version, which this
// program writes. It reads all older ones.
struct RecordFormat {
  std::string_view name;
  int64_t version = 0;
};

// The member of a stored body that has its version.
inline constexpr char kVersionField[] = "v";

// The version of a stored body. Bodies from before there were versions have 0.
inline int64_t VersionOf(const Json& body) { return NumberIn(body, kVersionField); }

// kInvalid: a newer version of muster wrote it. `what`: "the record of migration 'm-1'".
inline Status CheckVersion(int64_t version, const RecordFormat& format, std::string_view what) {
  if (version <= format.version) return {};
  return Error{Code::kInvalid,
               std::string(what) + " was written by a newer version of muster: in format " +
                   std::to_string(version) + ", and this one reads up to format " +
                   std::to_string(format.version),
               "use the version of muster that wrote it, or a newer one"};
}

// Whether something could not be read because a newer version of muster wrote it.
inline bool IsNewer(const Error& error) { return error.code == Code::kInvalid; }

}  // namespace muster
