#include "cli/serve_options.h"

#include "cli/command.h"

namespace muster::cli {
namespace {

class ServedTasks final : public serve::MigrationTasks {
 public:
  ServedTasks(Env& env, Metrics& metrics, net::Tracer& tracer, const std::string& url)
      : executors_(env, url), metered_(executors_.all(), metrics, tracer) {}

  std::vector<states::TaskExecutor*> executors() const override { return {&metered_}; }
  Status Deliver(const std::string& migration) override {
    return executors_.notifier().DeliverFor(migration);
  }
  Status Settle(const std::string& migration) override {
    MUSTER_TRY(executors_.notifier().Settle(migration, kNewsPatience));
    return {};
  }

 private:
  const Executors executors_;
  mutable MeteredExecutor metered_;  // its counters are not part of our state
};

}  // namespace

std::unique_ptr<serve::MigrationTasks> MakeMigrationTasks(Env& env, Metrics& metrics,
                                                          net::Tracer& tracer,
                                                          const std::string& url) {
  return std::make_unique<ServedTasks>(env, metrics, tracer, url);
}

std::string DefaultTokenFile() { return serve::StateFolder() + "/serve.tokens"; }
std::string DefaultAuditLog() { return serve::StateFolder() + "/audit.jsonl"; }

void AddServeOption(Command& command, ServeBesideOptions& options) {
  command
      .AddOption("--serve", options.port,
                 "Also serve the dashboard, on this port of 127.0.0.1; 0: any free port")
      .TypeName("PORT")
      .Range(0, 65'535);
  AddOtlpOption(command, options.otlp);
}

void AddOtlpOption(Command& command, std::string& endpoint) {
  command
      .AddOption("--otlp", endpoint,
                 "Send traces to this OpenTelemetry collector (http://127.0.0.1:4318)")
      .TypeName("URL")
      .Env("OTEL_EXPORTER_OTLP_ENDPOINT");
}

void AnnounceDashboard(const serve::Dashboard& dashboard, const std::string& token_file, bool asked,
                       std::ostream& out) {
  out << "dashboard: " << dashboard.Url() << '\n';
  if (asked || dashboard.tokens_are_new()) {
    out << "log in with: " << dashboard.LoginLink() << '\n';
    if (!asked) out << "this link is shown once; the tokens are in " << token_file << '\n';
  }
  out.flush();
}

Status DashboardBeside::Start(const std::string& url, store::Store& store,
                              const std::string& replica_file) {
  if (!port_) return {};
  serve::SiteOptions site{.stores = {url}, .shared = &store, .replica_files = {}, .make_tasks = {}};
  if (!replica_file.empty()) site.replica_files = {replica_file};
  site.make_tasks = [this](const std::string& of) {
    return MakeMigrationTasks(context_.env, metrics_, tracer_, of);
  };
  const serve::DashboardOptions dashboard{.site = std::move(site),
                                          .port = *port_,
                                          .token_file = DefaultTokenFile(),
                                          .audit_log = DefaultAuditLog()};
  MUSTER_ASSIGN(dashboard_, serve::Dashboard::Start(dashboard, context_.env, metrics_));
  AnnounceDashboard(*dashboard_, dashboard.token_file, false, context_.err);
  return {};
}

}  // namespace muster::cli
