#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/context.h"
#include "cli/metered_executor.h"
#include "core/metrics.h"
#include "serve/serve.h"  // IWYU pragma: export

namespace muster::cli {

class Command;

// How to observe another command: `--serve` and `--otlp`.
struct ServeBesideOptions {
  std::optional<int> port;
  std::string otlp;
};
void AddServeOption(Command& command, ServeBesideOptions& options);
void AddOtlpOption(Command& command, std::string& endpoint);

// A running command's metrics, traces and dashboard.
class DashboardBeside {
 public:
  DashboardBeside(Context& context, const std::string& service, const ServeBesideOptions& options)
      : context_(context), port_(options.port), tracer_(options.otlp, service) {}

  // Does nothing without --serve. `store` is the command's own, opened from `url`; it must outlive
  // this.
  Status Start(const std::string& url, store::Store& store, const std::string& replica_file = "");

  // The store with its calls counted and timed, for the command's own work.
  std::unique_ptr<store::Store> Metered(store::Store& store);

  Metrics& metrics() { return metrics_; }
  net::Tracer& tracer() { return tracer_; }

 private:
  Context& context_;
  const std::optional<int> port_;
  Metrics metrics_;
  net::Tracer tracer_;
  std::unique_ptr<serve::Dashboard> dashboard_;
};

// Prints the dashboard's address: with the login link, if it is still unused or is `asked`
// for.
void AnnounceDashboard(const serve::Dashboard& dashboard, const std::string& token_file, bool asked,
                       std::ostream& out);

// Makes the calls of migrations retried from a dashboard, on the store of a URL. Arguments must
// outlive it.
std::unique_ptr<states::TaskExecutor> NewServedExecutor(const std::string& store_url,
                                                        Metrics& metrics, net::Tracer& tracer,
                                                        Env& env);

std::string DefaultTokenFile();
std::string DefaultAuditLog();

}  // namespace muster::cli
