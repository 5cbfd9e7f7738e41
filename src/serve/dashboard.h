#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/metrics.h"
#include "muster/env.h"
#include "muster/result.h"
#include "serve/service.h"
#include "serve/site.h"

namespace muster::serve {

struct DashboardOptions {
  SiteOptions site;
  std::string address = "127.0.0.1";
  int port = 0;
  std::string certificate = {};  // PEM files, both or none
  std::string key = {};
  std::vector<std::string> allowed_hosts = {};  // besides the loopback names
  std::string token_file;
  std::string audit_log;
  bool read_only = false;
  int max_viewers = 64;
};

// A server of the API, live events, metrics and the page, until it is destroyed.
// Permissions: docs/guide/serve.md.
class Dashboard {
 public:
  // kInvalid: an address other than loopback without TLS. `env` and `metrics` must outlive it.
  static Result<std::unique_ptr<Dashboard>> Start(const DashboardOptions& options, Env& env,
                                                  Metrics& metrics);
  virtual ~Dashboard() = default;

  virtual std::string Url() const = 0;  // "http://127.0.0.1:8077/"
  // The link that logs an operator in: a secret.
  virtual std::string LoginLink() const = 0;
  virtual bool tokens_are_new() const = 0;
};

// The default folder of tokens and the audit log: $XDG_STATE_HOME/muster, or
// ~/.local/state/muster.
std::string StateFolder();

}  // namespace muster::serve
