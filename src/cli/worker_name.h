#pragma once

#include <unistd.h>

#include <climits>
#include <string>

namespace muster::cli {

// The default name of a worker: host and process.
inline std::string DefaultWorkerName() {
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, sizeof host - 1);
  return std::string(host) + "-" + std::to_string(getpid());
}

}  // namespace muster::cli
