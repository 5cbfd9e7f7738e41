#include "serve/dashboard.h"

#include <cstdlib>

#include "serve/api.h"

namespace muster::serve {
namespace {

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

Status CheckAddress(const DashboardOptions& options) {
  if (options.certificate.empty() != options.key.empty()) {
    return Error{Code::kInvalid, "TLS needs both a certificate and its key",
                 "give --tls-cert and --tls-key"};
  }
  if (IsLoopback(options.address) || !options.certificate.empty()) return {};
  return Error{Code::kInvalid, "TLS is required to serve on " + options.address,
               "give --tls-cert and --tls-key, or stay on 127.0.0.1 and forward the port by SSH"};
}

class RunningDashboard final : public Dashboard {
 public:
  RunningDashboard(const DashboardOptions& options, std::unique_ptr<Site> site, Tokens tokens,
                   Env& env, Metrics& metrics)
      : options_(options),
        env_(env),
        tokens_(std::move(tokens)),
        service_(std::move(site),
                 {.read_only = options.read_only,
                  .audit_log = options.audit_log,
                  .live = {.max_viewers = options.max_viewers}},
                 metrics),
        api_(service_, metrics, env) {}

  Status Listen() {
    const bool tls = !options_.certificate.empty();
    WebServerOptions web{.address = options_.address,
                         .port = options_.port,
                         .certificate = options_.certificate,
                         .key = options_.key,
                         .headers = SecurityHeaders(tls)};
    // Each viewer holds a connection; leave room for other requests.
    web.max_connections = options_.max_viewers + 128;
    std::vector<std::string> hosts = options_.allowed_hosts;
    if (IsLoopback(options_.address)) {
      hosts.insert(hosts.end(), {"127.0.0.1", "localhost", "[::1]"});
    }
    hosts.push_back(Bracketed());
    MUSTER_ASSIGN(server_, WebServer::Start(web, api_, [&](int port) {
                    const std::string ended =
                        options_.token_file + ".ended-" + std::to_string(port);
                    api_.Open(Access(tokens_, hosts, port, tls, ended, env_));
                  }));
    return {};
  }

  std::string Url() const override {
    return std::string(options_.certificate.empty() ? "http://" : "https://") + Bracketed() + ":" +
           std::to_string(server_->port()) + "/";
  }
  std::string LoginLink() const override {
    return Url() +
           "login?token=" + (options_.read_only ? tokens_.for_viewer : tokens_.for_operator);
  }
  bool tokens_are_new() const override { return tokens_.created; }

 private:
  std::string Bracketed() const {
    const bool v6 = options_.address.find(':') != std::string::npos;
    return v6 ? "[" + options_.address + "]" : options_.address;
  }

  const DashboardOptions options_;
  Env& env_;
  const Tokens tokens_;
  Service service_;
  Api api_;
  std::unique_ptr<WebServer> server_;  // destroyed first
};

}  // namespace

std::string StateFolder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/muster";
  const char* home = std::getenv("HOME");
  return (home != nullptr && *home == '/' ? std::string(home) : "/root") + "/.local/state/muster";
}

Result<std::unique_ptr<Dashboard>> Dashboard::Start(const DashboardOptions& options, Env& env,
                                                    Metrics& metrics) {
  MUSTER_TRY(CheckAddress(options));
  MUSTER_ASSIGN(Tokens tokens, LoadTokens(options.token_file));
  MUSTER_ASSIGN(auto site, Site::Open(options.site, env));
  auto dashboard =
      std::make_unique<RunningDashboard>(options, std::move(site), std::move(tokens), env, metrics);
  MUSTER_TRY(dashboard->Listen());
  return std::unique_ptr<Dashboard>(std::move(dashboard));
}

}  // namespace muster::serve
