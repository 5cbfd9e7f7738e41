#pragma once

#include <optional>
#include <string>

namespace muster::bench {

// The median time of `muster --version`, of the program beside this one; none if it is not there.
std::optional<double> StartUpMilliseconds(int samples);

// The resident memory of a process that has nothing to do but to wait for work in the store.
double IdleWorkerMebibytes(const std::string& store_url);

// What that process does. Ends when its standard input does.
void RunIdleWorker(const std::string& store_url);

// The argument, followed by the store's URL, by which this program becomes that process.
inline constexpr const char* kIdleWorker = "--idle-worker";

}  // namespace muster::bench
