#pragma once

#include <string>

namespace muster::testing {

// One server of each kind serves all processes of a test run: `shared_servers`, in this folder,
// starts them and names their ports in the environment. Each process keeps to names of its own.

// The port that the environment's `variable` names; 0 if it names none.
int SharedPort(const char* variable);

// `name` behind a prefix that is this process's alone: a lower-case letter, then lower-case
// letters, digits and underscores. For indices, tables and roles on a shared server.
std::string UniqueName(const std::string& name);

}  // namespace muster::testing
