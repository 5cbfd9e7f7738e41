#pragma once

#include <csignal>
#include <string>

#include "support/server_process.h"

namespace muster::testing {

// DynamoDB Local for tests, on a free port of 127.0.0.1. It takes about two seconds to start; tests
// share one where they can, each with a table or namespace of its own. Gone, with its data, when
// this object or the whole test process is.
//
// It takes any credentials of letters and digits; the constructor puts some into the environment
// unless it has some. It has no point-in-time recovery, never throttles, and its indexes are never
// behind. Functions throw std::runtime_error when something fails that a test does not mean to
// fail.
class DynamoDbServer {
 public:
  struct Options {
    bool durable = false;  // keeps its data in a file, so that it survives Kill
    int heap_mib = 512;
    bool warm = false;  // let Java optimise: starts slower, runs faster; for measurements
  };

  // Why no such server can be had on this machine; empty if one can.
  static std::string Unavailable();

  // One server for all tests of a process that do not stop it.
  static DynamoDbServer& Shared();

  DynamoDbServer() : DynamoDbServer(Options{}) {}
  explicit DynamoDbServer(const Options& options);

  int port() const { return port_; }

  // http://127.0.0.1:PORT; through `port`, where a proxy listens there.
  std::string Endpoint() const { return Endpoint(port_); }
  static std::string Endpoint(int port);

  // The URL of a store, whose first use creates the table.
  std::string Url(const std::string& table) const { return Url(table, port_); }
  static std::string Url(const std::string& table, int port);

  void Start();  // returns once the server answers
  void Kill();   // no goodbye
  void Restart();

  // Stops and continues the server: it then neither answers nor hangs up.
  void Pause() { process_.Signal(SIGSTOP); }
  void Resume() { process_.Signal(SIGCONT); }

  // Sends a request, such as "ListTables" with "{}"; the answer. Throws unless the status is 200.
  std::string Call(const std::string& operation, const std::string& body) const;

 private:
  const Options options_;
  const int port_;
  ServerProcess process_;
};

}  // namespace muster::testing
