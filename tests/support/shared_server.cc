#include "support/shared_server.h"

#include <unistd.h>

#include <cstdlib>
#include <random>

namespace muster::testing {

int SharedPort(const char* variable) {
  const char* port = getenv(variable);
  return port == nullptr ? 0 : std::atoi(port);
}

std::string UniqueName(const std::string& name) {
  // The random part guards against reused process ids.
  static const std::string prefix =
      "t" + std::to_string(getpid()) + "x" + std::to_string(std::random_device{}() % 100'000) + "_";
  return prefix + name;
}

}  // namespace muster::testing
