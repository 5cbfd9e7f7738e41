#pragma once

#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"

namespace muster::store {

// One check and its result.
struct Finding {
  enum class Level { kOk, kWarn, kFail };
  Level level = Level::kOk;
  std::string check;            // a short, fixed name: "connect", "disk", "clock"
  std::string message;          // the result
  std::string hint = {};        // the fix; always set unless kOk
  Code code = Code::kInternal;  // for kFail: the code a command using the store would fail with
};

// Checks everything that commands need from a store: connection, permissions, encryption, clock,
// disk, versions, latency. A missing store is not created. An existing one is written to: a record
// of kind `doctor` is created, read and deleted. Takes a few seconds at most.
//
// kInvalid: the URL is invalid. Everything else is a finding.
Result<std::vector<Finding>> DiagnoseStore(const std::string& url, Env& env);

}  // namespace muster::store
