#pragma once

#include <string>

namespace muster::testing {

// One server of each kind serves all processes of a test run: `shared_servers`, in this folder,
// starts them and puts their ports into the environment. Each process uses its own names.

// The port in the environment's `variable`; 0 if unset.
int SharedPort(const char* variable);

// `name` with a prefix unique to this process: a lower-case letter, then lower-case letters, digits
// and underscores. For indices, tables and roles on a shared server.
std::string UniqueName(const std::string& name);

}  // namespace muster::testing
