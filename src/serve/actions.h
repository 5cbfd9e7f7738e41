#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "muster/result.h"
#include "serve/audit_log.h"
#include "serve/dead_letter_index.h"
#include "serve/jobs.h"
#include "serve/site.h"

namespace muster::serve {

// A request for an action.
struct ActionCall {
  std::vector<std::string> names;  // the values in its path
  Json body;                       // checked: only fields that the action knows
  bool preview = false;            // only report what it would do
  std::string actor;
};

// The operators' actions, through the same functions as the commands. Each returns an ActionResult
// of docs/api/openapi.yaml. Thread-safe.
class Actions {
 public:
  Actions(const Site& site, DeadLetterIndex& letters, Jobs& jobs, AuditLog& audit)
      : site_(site), letters_(letters), jobs_(jobs), audit_(audit) {}

  Result<Json> CancelMigration(const ActionCall& call);
  Result<Json> RetryMigration(const ActionCall& call);
  Result<Json> RetryOne(const ActionCall& call);
  Result<Json> ReleaseOne(const ActionCall& call);
  Result<Json> RetryAll(const ActionCall& call);
  Result<Json> Scale(const ActionCall& call);
  Result<Json> SteerProjection(const ActionCall& call);  // pause, resume or replay
  Result<Json> Redrive(const ActionCall& call);

 private:
  Status StartJob(const ActionCall& call, const std::string& name, Jobs::Work work);

  const Site& site_;
  DeadLetterIndex& letters_;
  Jobs& jobs_;
  AuditLog& audit_;
};

}  // namespace muster::serve
