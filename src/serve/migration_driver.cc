#include "serve/migration_driver.h"

namespace muster::serve {

MigrationDriver::MigrationDriver(const SiteStore& store, Env& env)
    : executor_(store.make_executor()),
      engine_(plan::NewRunEngine(*store.store, {executor_.get()}, {.owner = "serve"}, env)) {}

Result<plan::RunState> MigrationDriver::Retry(const std::string& id,
                                              const plan::ResumeOptions& options,
                                              const std::stop_token& stop) {
  plan::RunObserver nothing;
  MUSTER_ASSIGN(const plan::RunState run, engine_->Resume(id, options, nothing, stop));
  return engine_->Drive(run, stop);
}

}  // namespace muster::serve
