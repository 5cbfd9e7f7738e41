#pragma once

#include <string>

#include "muster/result.h"

namespace muster {

// The refusal of tables that a newer muster has migrated: `found` is their schema version, `known`
// the newest that this program can use. `where` names the server or file; may be empty.
inline Error NewerSchema(const std::string& where, const std::string& what, int found, int known) {
  return {Code::kIncompatible,
          (where.empty() ? "" : where + ": ") + what + " has schema version " +
              std::to_string(found) + "; this muster supports versions up to " +
              std::to_string(known),
          "upgrade muster to the version that wrote it, or use another namespace"};
}

}  // namespace muster
