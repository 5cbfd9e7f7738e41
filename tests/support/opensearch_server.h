#pragma once

#include <csignal>
#include <memory>
#include <string>

#include "support/http_relay.h"
#include "support/server_process.h"

namespace muster::testing {

// An OpenSearch or Elasticsearch server for tests: one node, its own data folder, a free port on
// 127.0.0.1, no TLS and no passwords. It takes 10 to 50 seconds to start, so tests that do not stop
// it use Shared(). Removed, with its data, with this object or the whole test process.
//
// Functions throw std::runtime_error on unintended failures.
class OpenSearchServer {
 public:
  struct Options {
    // A folder of build/third_party, fetched by `scripts/fetch NAME`.
    std::string distribution = DefaultDistribution();
    int heap_mib = 512;
    bool warm = false;  // let Java optimise: starts slower, runs faster; for measurements
  };

  // The environment's MUSTER_OPENSEARCH, or opensearch-2.19.6.
  static std::string DefaultDistribution();

  // Why such a server is not available on this machine; empty if it is.
  static std::string Unavailable(const Options& options);
  static std::string Unavailable() { return Unavailable(Options{}); }

  // The server shared by all processes of the test run; without one, a server that the first call
  // starts. Names of indices, repositories and templates come from UniqueName, by which they are
  // deleted when the process ends. Such a server cannot be stopped or paused: that throws.
  static OpenSearchServer& Shared();

  OpenSearchServer() : OpenSearchServer(Options{}) {}
  explicit OpenSearchServer(const Options& options);
  ~OpenSearchServer();

  int port() const { return front_ ? front_->port() : port_; }
  const std::string& distribution() const { return options_.distribution; }

  // http://127.0.0.1:PORT + `target`
  std::string Url(const std::string& target = "") const;

  // A folder of this process for snapshot repositories of type fs.
  const std::string& RepositoryFolder() const { return repository_; }

  void Start();  // returns once the server answers
  void Kill();   // no graceful shutdown
  void Restart();

  // Stops and continues the server: while stopped it neither answers nor hangs up.
  void Pause() { Own().Signal(SIGSTOP); }
  void Resume() { Own().Signal(SIGCONT); }

  // Sends a request with a JSON body (or lines of JSON, for _bulk); returns the response's body.
  // Throws unless the status is below 300.
  std::string Call(const std::string& method, const std::string& target,
                   const std::string& body = "") const;

 private:
  struct ForAll {};
  explicit OpenSearchServer(ForAll);

  void Launch();
  void StartProcess();
  ServerProcess& Own() const;  // throws if this process may not disturb the server

  const Options options_;
  const bool shared_ = false;
  int port_ = 0;
  std::unique_ptr<ServerProcess> process_;  // null if another process owns it
  std::string repository_;
  std::unique_ptr<HttpRelay> front_;  // adds what every real server has and this one lacks
};

}  // namespace muster::testing
