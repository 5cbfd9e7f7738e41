#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "muster/runs.h"
#include "serve/site.h"

namespace muster::serve {

// Changes one migration of a store as the command line does. The store and `env` must outlive it.
class MigrationDriver {
 public:
  MigrationDriver(const SiteStore& store, Env& env);

  // `muster retry`: drives it until it ends or a stop is requested.
  Result<plan::RunState> Retry(const std::string& id, const plan::ResumeOptions& options,
                               const std::stop_token& stop);

  // `muster cancel`.
  Status Cancel(const std::string& id) { return engine_->Cancel(id); }

 private:
  const std::unique_ptr<states::TaskExecutor> executor_;
  const std::unique_ptr<plan::RunEngine> engine_;
};

}  // namespace muster::serve
