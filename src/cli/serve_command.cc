#include <chrono>
#include <memory>

#include "cli/commands.h"
#include "cli/existing_store.h"
#include "cli/exit_codes.h"
#include "cli/run_checks.h"
#include "cli/serve_options.h"
#include "cli/signals.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/log.h"

namespace muster::cli {
namespace {

constexpr int kDefaultPort = 8077;

struct ServeCommandOptions {
  serve::DashboardOptions dashboard = {.site = {},
                                       .port = kDefaultPort,
                                       .token_file = DefaultTokenFile(),
                                       .audit_log = DefaultAuditLog()};
  bool login_link = false;
  std::string otlp;
  std::string describe;
};

// Prints docs/api/openapi.yaml or web/src/api/types.ts.
Result<int> Describe(const std::string& what, Context& context) {
  if (what == "openapi") {
    context.out << serve::ApiDocument();
    return kDone;
  }
  MUSTER_ASSIGN(const std::string types, serve::ApiTypes());
  context.out << types;
  return kDone;
}

Result<int> Serve(const ServeCommandOptions& options, Context& context) {
  if (!options.describe.empty()) return Describe(options.describe, context);
  serve::DashboardOptions dashboard = options.dashboard;
  if (dashboard.site.stores.empty()) dashboard.site.stores = {context.store};
  // It may be started before what it shows, but a mistyped name must not look like an idle store.
  for (const std::string& url : dashboard.site.stores) {
    const Status there = CheckStoreExists(url);
    if (!there) Log(Level::kWarning, there.error().message + " yet: an empty one is created", {});
  }
  Metrics metrics;
  net::Tracer tracer(options.otlp, "muster serve");
  dashboard.site.make_executor = [&](const std::string& url) {
    return NewServedExecutor(url, metrics, tracer, context.env);
  };
  const StopOnSignals signals("");
  dashboard.site.check_run = [&](const plan::RunState& run) {
    return CheckResumable(run, context.env, signals.Token());
  };
  const InterruptScope scope(signals.Token());
  MUSTER_ASSIGN(const auto running, serve::Dashboard::Start(dashboard, context.env, metrics));
  if (context.json) {
    Json json{{"url", running->Url()}, {"token_file", dashboard.token_file}};
    if (options.login_link || running->tokens_are_new()) json["login"] = running->LoginLink();
    context.out << ToJsonText(json) << std::endl;
  } else {
    AnnounceDashboard(*running, dashboard.token_file, options.login_link, context.out);
  }
  while (context.env.Sleep(std::chrono::hours(1), signals.Token())) {
  }
  return kDone;
}

}  // namespace

void AddServeCommand(Command& app, Context& context) {
  Command command =
      app.AddCommand("serve", "Serve the dashboard, its API and metrics for Prometheus");
  command.Group("Operate");
  auto options = std::make_shared<ServeCommandOptions>();
  serve::DashboardOptions& dashboard = options->dashboard;
  command.AddOption("--store", dashboard.site.stores, "What to show; may be repeated")
      .TypeName("URL")
      .OneValuePerUse();
  command
      .AddOption("--replica", dashboard.site.replica_files,
                 "A replica set's file, to show its lag; may be repeated")
      .TypeName("FILE")
      .OneValuePerUse();
  command
      .AddOption("--dead-letters", dashboard.site.dead_letters,
                 "The folder of dead-letter files (.)")
      .TypeName("FOLDER");
  command.AddOption("--port", dashboard.port, "The port to listen on (8077); 0: any free port")
      .TypeName("N")
      .Range(0, 65'535);
  command
      .AddOption("--listen", dashboard.address,
                 "The address to listen on (127.0.0.1); others need TLS")
      .TypeName("ADDRESS");
  command.AddOption("--tls-cert", dashboard.certificate, "The server's certificate, as PEM")
      .TypeName("FILE");
  command.AddOption("--tls-key", dashboard.key, "Its key, as PEM").TypeName("FILE");
  command
      .AddOption("--allow-host", dashboard.allowed_hosts,
                 "Another host name of the server; may be repeated")
      .TypeName("NAME")
      .OneValuePerUse();
  command.AddFlag("--read-only", dashboard.read_only, "Allow no changes");
  command
      .AddOption("--max-viewers", dashboard.max_viewers,
                 "Maximum number of open pages (64); further ones get a 503")
      .TypeName("N")
      .Range(1, 1'000);
  command
      .AddOption("--token-file", dashboard.token_file,
                 "The file of tokens; by default below ~/.local/state/muster")
      .TypeName("FILE");
  command
      .AddOption("--audit-log", dashboard.audit_log, "The audit log; by default beside the tokens")
      .TypeName("FILE");
  command.AddFlag("--login-link", options->login_link, "Print the login link again");
  AddOtlpOption(command, options->otlp);
  command.AddOption("--describe", options->describe, "Print the API's document or types")
      .OneOf({"openapi", "types"})
      .Hidden();
  command.Footer(
      "  muster serve --store sqlite:work.db\n"
      "  muster serve --store postgresql://me@db/app --replica orders.yaml --read-only");
  command.Action(context, [options, &context] { return Serve(*options, context); });
}

}  // namespace muster::cli
