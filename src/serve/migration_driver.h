#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "plan/plan.h"
#include "serve/site.h"

namespace muster::serve {

// Changes one migration of a store as the command line does. The store and `env` must outlive it.
class MigrationDriver {
 public:
  MigrationDriver(const SiteStore& store, Env& env);

  // The plan of a run as its file is now, with the variables of its start. kInvalid: lists every
  // problem in it.
  static Result<plan::Plan> Load(const plan::RunState& run);

  // `muster retry`: drives it until it ends or a stop is requested.
  Result<plan::RunState> Retry(const std::string& id, const plan::Plan& plan,
                               const plan::ResumeOptions& options, const std::stop_token& stop);

  // `muster cancel`.
  Status Cancel(const std::string& id) { return engine_.runs().Cancel(id); }

 private:
  const std::unique_ptr<MigrationTasks> tasks_;
  plan::RunEngine engine_;
};

}  // namespace muster::serve
