#pragma once

#include <string>

namespace muster {

// The process that has the write lock of a SQLite file, for people: "process 4711 (muster, which is
// stopped)". Empty: none has it, or the system does not say. Opens nothing: closing one of SQLite's
// files would drop the locks that this process has on it.
std::string SqliteLockHolder(const std::string& path);

}  // namespace muster
