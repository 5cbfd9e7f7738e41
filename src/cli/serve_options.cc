#include "cli/serve_options.h"

#include "cli/command.h"
#include "cli/run_checks.h"
#include "muster/executors.h"
#include "store/store.h"

namespace muster::cli {
namespace {

// Muster's own executors, metered.
class ServedExecutor final : public states::ExecutorWrapper {
 public:
  ServedExecutor(std::unique_ptr<states::TaskExecutor> standard,
                 std::unique_ptr<MeteredExecutor> metered)
      : ExecutorWrapper({metered.get()}),
        standard_(std::move(standard)),
        metered_(std::move(metered)) {}

 private:
  const std::unique_ptr<states::TaskExecutor> standard_;
  const std::unique_ptr<MeteredExecutor> metered_;
};

}  // namespace

std::unique_ptr<states::TaskExecutor> NewServedExecutor(const std::string& store_url,
                                                        Metrics& metrics, net::Tracer& tracer,
                                                        Env& env) {
  auto standard = task::NewExecutors(store_url, env);
  auto metered = std::make_unique<MeteredExecutor>(*standard, metrics, tracer);
  return std::make_unique<ServedExecutor>(std::move(standard), std::move(metered));
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
  serve::SiteOptions site{
      .stores = {url}, .shared = &store, .replica_files = {}, .make_executor = {}};
  if (!replica_file.empty()) site.replica_files = {replica_file};
  site.make_executor = [this](const std::string& of) {
    return NewServedExecutor(of, metrics_, tracer_, context_.env);
  };
  site.check_run = [this](const plan::RunState& run) {
    return CheckResumable(run, context_.env, {});
  };
  const serve::DashboardOptions dashboard{.site = std::move(site),
                                          .port = *port_,
                                          .token_file = DefaultTokenFile(),
                                          .audit_log = DefaultAuditLog()};
  MUSTER_ASSIGN(dashboard_, serve::Dashboard::Start(dashboard, context_.env, metrics_));
  AnnounceDashboard(*dashboard_, dashboard.token_file, false, context_.err);
  return {};
}

std::unique_ptr<store::Store> DashboardBeside::Metered(store::Store& store) {
  return std::make_unique<store::MeteredStore>(store, metrics_, context_.env);
}

}  // namespace muster::cli
