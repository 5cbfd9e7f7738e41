#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/states.h"
#include "muster/store.h"

namespace muster::task {

// Muster's own executors, as one: for RunEngine (muster/runs.h) and States (muster/states.h).
//
//   muster:copy       stages an object of a source as a file, as leased work items
//   muster:transform  loads a table from staged objects, by a script of SQL
//   muster:reconcile  compares the rows staged with those loaded
//   muster:status     records the status of a migration
//   muster:notify     sends notifications to files, URLs, programs and SNS
//   muster:exec       runs a program
//   muster:sql        runs a statement on SQLite or PostgreSQL
//   muster:http       calls an HTTP API, also as arn:aws:states:::http:invoke
//   arn:aws:…         services of AWS, as Step Functions calls them
//
// docs/guide/tasks.md describes their parameters, results and failures.
//
// Copies, statuses and notifications are kept in `store`: usually that of the runs or executions,
// so that another process can continue. The store and `env` must outlive the executor, whose
// destructor waits up to ten seconds for notifications that were not tried yet.
//
//   auto tasks = NewExecutors(*store, RealEnv());
MUSTER_EXPORT std::unique_ptr<states::TaskExecutor> NewExecutors(store::Store& store, Env& env);

// The same with the store of a URL, which is opened when it is first needed.
MUSTER_EXPORT std::unique_ptr<states::TaskExecutor> NewExecutors(const std::string& store_url,
                                                                 Env& env);

// Checks that there are credentials and a region to sign calls of AWS with. kInvalid: what is
// missing, and how to set it. Calls no service except the metadata service of an instance or
// container.
MUSTER_EXPORT Status CheckAwsAccess(Env& env, std::stop_token stop);

// Checks that muster:transform and muster:reconcile can run here. kIncompatible: DuckDB cannot be
// loaded.
MUSTER_EXPORT Status CheckTransforms();

// Whether the target that muster:transform loads rows into exists, as far as this can be known
// without connecting to it: a SQLite file. kInvalid: the URL is not one of a target. Other errors
// are those of opening the file.
MUSTER_EXPORT Status CheckTransformTarget(const std::string& url);

// A notification that a run has sent.
struct SentNotification {
  std::string target;  // may hold secret references, never secrets
  std::string subject;
  std::string dedupe;  // identifies repeats
  bool delivered = false;
  std::string error;  // of the last try; empty: none has failed
};

// All notifications of a run (RunState::id), delivered or not. One that cannot be read has an error
// and no target.
MUSTER_EXPORT Result<std::vector<SentNotification>> ReadNotifications(store::Store& store,
                                                                      const std::string& run,
                                                                      Env& env);

}  // namespace muster::task
