#pragma once

#include <csignal>
#include <memory>
#include <string>

#include "support/server_process.h"

namespace muster::testing {

// DynamoDB Local for tests, on a free port of 127.0.0.1. It takes about two seconds to start; tests
// that do not stop it use Shared(). Removed, with its data, with this object or the whole test
// process.
//
// It accepts any credentials of letters and digits; the constructor sets some in the environment
// unless there are any. It has no point-in-time recovery, never throttles, and its indexes never
// lag. Functions throw std::runtime_error on unintended failures.
class DynamoDbServer {
 public:
  struct Options {
    bool durable = false;  // keeps its data in a file, so that it survives Kill
    int heap_mib = 512;
    bool warm = false;  // let Java optimise: starts slower, runs faster; for measurements
  };

  // Why such a server is not available on this machine; empty if it is.
  static std::string Unavailable();

  // The server shared by all processes of the test run; without one, a server that the first call
  // starts. Table names come from UniqueName, by which they are deleted when the process ends. Such
  // a server cannot be stopped or paused: that throws.
  static DynamoDbServer& Shared();

  DynamoDbServer() : DynamoDbServer(Options{}) {}
  explicit DynamoDbServer(const Options& options);
  ~DynamoDbServer();

  int port() const { return port_; }

  // http://127.0.0.1:PORT; through `port`, if a proxy listens there.
  std::string Endpoint() const { return Endpoint(port_); }
  static std::string Endpoint(int port);

  // The URL of a store, whose first use creates the table.
  std::string Url(const std::string& table) const { return Url(table, port_); }
  static std::string Url(const std::string& table, int port);

  void Start();  // returns once the server answers
  void Kill();   // no graceful shutdown
  void Restart();

  // Stops and continues the server: while stopped it neither answers nor hangs up.
  void Pause() { Own().Signal(SIGSTOP); }
  void Resume() { Own().Signal(SIGCONT); }

  // Sends a request, such as "ListTables" with "{}"; returns the response. Throws unless the status
  // is 200.
  std::string Call(const std::string& operation, const std::string& body) const;

 private:
  struct ForAll {};
  explicit DynamoDbServer(ForAll);

  void Launch();
  void StartProcess();
  void DeleteTables() const;
  ServerProcess& Own() const;  // throws if this process may not disturb the server

  const Options options_;
  const bool shared_ = false;
  int port_ = 0;
  std::unique_ptr<ServerProcess> process_;  // null if another process owns it
};

}  // namespace muster::testing
