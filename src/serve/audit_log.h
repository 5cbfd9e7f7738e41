#pragma once

#include <mutex>
#include <string>

#include "base/json.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster::serve {

// Who did what, in a file that grows: one JSON object a line, readable for its owner alone.
// Thread-safe; lines of several processes never mix.
class AuditLog {
 public:
  AuditLog(std::string path, Env& env) : path_(std::move(path)), env_(env) {}

  // {"at", "actor", "action", "outcome", …details}. On disk when it returns.
  Status Add(const std::string& actor, const std::string& action, const std::string& outcome,
             const Json& details);

 private:
  const std::string path_;
  Env& env_;
  std::mutex mutex_;
};

}  // namespace muster::serve
