#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/serve_options.h"
#include "cli/signals.h"

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
};

Result<int> Serve(const ServeCommandOptions& options, Context& context) {
  serve::DashboardOptions dashboard = options.dashboard;
  if (dashboard.site.stores.empty()) dashboard.site.stores = {context.store};
  Metrics metrics;
  Tracer tracer(options.otlp, "muster serve");
  dashboard.site.make_tasks = [&](const std::string& url) {
    return MakeMigrationTasks(context.env, metrics, tracer, url);
  };
  const StopOnSignals signals("");
  MUSTER_ASSIGN(const auto running, serve::Dashboard::Start(dashboard, context.env, metrics));
  if (context.json) {
    Json json{{"url", running->Url()}, {"token_file", dashboard.token_file}};
    if (options.login_link || running->tokens_are_new()) json["login"] = running->LoginLink();
    context.out << ToJsonText(json) << std::endl;
  } else {
    TellDashboard(*running, dashboard.token_file, options.login_link, context.out);
  }
  while (context.env.Sleep(std::chrono::hours(1), signals.Token())) {
  }
  return kDone;
}

}  // namespace

void AddServeCommand(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("serve", "Serve the dashboard, its API and metrics for Prometheus");
  command->group("Migrate");
  auto options = std::make_shared<ServeCommandOptions>();
  serve::DashboardOptions& dashboard = options->dashboard;
  command->add_option("--store", dashboard.site.stores, "What to show; may be repeated")
      ->type_name("URL")
      ->allow_extra_args(false);
  command
      ->add_option("--replica", dashboard.site.replica_files,
                   "A replica set's file, to show its lag; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--dead-letters", dashboard.site.dead_letters,
                   "The folder with files of dead letters (.)")
      ->type_name("FOLDER");
  command->add_option("--port", dashboard.port, "Where to listen (8077); 0: a free port")
      ->type_name("N")
      ->check(CLI::Range(0, 65'535));
  command
      ->add_option("--listen", dashboard.address,
                   "The address to listen on (127.0.0.1); others need TLS")
      ->type_name("ADDRESS");
  command->add_option("--tls-cert", dashboard.certificate, "The server's certificate, as PEM")
      ->type_name("FILE");
  command->add_option("--tls-key", dashboard.key, "Its key, as PEM")->type_name("FILE");
  command
      ->add_option("--allow-host", dashboard.allowed_hosts,
                   "Another name that the server is reached by; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_flag("--read-only", dashboard.read_only, "Show, and let nobody change anything");
  command
      ->add_option("--max-viewers", dashboard.max_viewers,
                   "Pages that may be open at a time (64); the next gets a 503")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000));
  command
      ->add_option("--token-file", dashboard.token_file,
                   "Where the tokens are, or will be; by default below ~/.local/state/muster")
      ->type_name("FILE");
  command
      ->add_option("--audit-log", dashboard.audit_log,
                   "Where it is written who did what; by default beside the tokens")
      ->type_name("FILE");
  command->add_flag("--login-link", options->login_link, "Print the login link again");
  AddOtlpOption(*command, options->otlp);
  command->footer(
      "  muster serve --store sqlite:work.db\n"
      "  muster serve --store postgresql://me@db/app --replica orders.yaml --read-only");
  command->callback([options, &context] {
    context.action = [options, &context] { return Serve(*options, context); };
  });
}

}  // namespace muster::cli
