#pragma once

#include <string>

namespace muster::sql {

// The process that holds a SQLite file's write lock, for messages: "process 4711 (muster, which is
// stopped)". Empty: none, or unknown. Opens nothing: closing one of SQLite's files would drop this
// process's locks on it.
std::string SqliteLockHolder(const std::string& path);

}  // namespace muster::sql
