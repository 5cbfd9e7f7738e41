#pragma once

#include <map>
#include <string>

#include "support/server_process.h"

namespace muster::testing {

// A private moto, an imitation of AWS. It takes any credentials. Gone with the object.
class MotoServer {
 public:
  // Why there is none; empty if it is there.
  static std::string Missing();

  // Starts it and waits until it answers. Throws std::runtime_error if it does not.
  MotoServer();

  std::string Url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // The environment that leads AWS's clients to it.
  std::map<std::string, std::string> Variables() const;

 private:
  const int port_;
  ServerProcess process_;
};

}  // namespace muster::testing
