#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/json_fields.h"
#include "muster/result.h"

namespace muster {

// The version of a stored body, its member `v`. Bodies from before there were versions have 0.
inline int64_t VersionOf(const Json& body) { return NumberIn(body, "v"); }

// kInvalid: a newer version of muster wrote it. `what`: "the record of migration 'm-1'".
inline Status CheckVersion(int64_t version, int64_t newest, std::string_view what) {
  if (version <= newest) return {};
  return Error{Code::kInvalid,
               std::string(what) + " was written by a newer version of muster: in format " +
                   std::to_string(version) + ", and this one reads up to format " +
                   std::to_string(newest),
               "use the version of muster that wrote it, or a newer one"};
}

}  // namespace muster
