#pragma once

#include <map>
#include <string>

#include "support/server_process.h"

namespace muster::testing {

// A private moto, an imitation of AWS. It accepts any credentials. Ends with the object.
class MotoServer {
 public:
  // Why it is not available; empty if it is.
  static std::string Missing();

  // Starts it and waits until it answers. Throws std::runtime_error if it does not.
  MotoServer();

  std::string Url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // Environment variables that direct AWS's clients to it.
  std::map<std::string, std::string> Variables() const;

 private:
  const int port_;
  ServerProcess process_;
};

}  // namespace muster::testing
