#pragma once

#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"

namespace muster {

// One thing that was looked at, and what it means for a store.
struct Finding {
  enum class Level { kOk, kWarn, kFail };
  Level level = Level::kOk;
  std::string check;            // a short, fixed name: "connect", "disk", "clock"
  std::string message;          // what was found
  std::string hint = {};        // how to mend it; always there unless kOk
  Code code = Code::kInternal;  // of a kFail: what a command that uses the store would fail with
};

// Looks at everything that commands need from a store: reaching it, rights, encryption, clock,
// disk, versions, latency. A store that is not there yet is not created. One that is, is written
// to: a record of the kind `doctor` is created, read and deleted. Takes seconds at most.
//
// kInvalid: the URL cannot be understood. All else that is wrong is a finding.
Result<std::vector<Finding>> DiagnoseStore(const std::string& url, Env& env);

}  // namespace muster
