#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/states.h"
#include "muster/store.h"
#include "plan/plan.h"

namespace muster::plan {

// A migration as it stands in the store.
struct RunState {
  std::string id;  // the input migrationId
  std::string plan;
  std::string path;
  std::string hash;
  std::string profile;
  std::map<std::string, std::string> inputs;
  int64_t attempt = 1;
  std::string execution;  // its state machine's, of this attempt
  std::string status;     // IN_PROGRESS, COMPLETED, FAILED, CANCELLED
  std::string error;
  std::string cause;
  std::string output;  // JSON text, once it is completed
  WallTime start{};    // of this attempt
  std::optional<WallTime> stop = {};
};

// What is to be done again although it succeeded.
struct Again {
  std::optional<int64_t> rank = {};
  std::optional<std::string> task = {};
};

struct ResumeOptions {
  Again again = {};
  bool accept_changes = false;  // of the plan
};

// Runs of plans on a store: each is a record that pins the plan, and an execution of its state
// machine. One process at a time drives a run: the record is leased, and renewed by Drive. A crash
// leaves it to whoever resumes it when the lease (15 seconds) is over.
//
// Thread-safe as far as the store is.
class Runs {
 public:
  Runs(Store& store, States& states, Env& env);

  // Begins a migration. kConflict: there is one of that id, which says how it stands and what to
  // do. kInvalid: inputs that are missing, unknown or no names.
  Result<RunState> Start(const Plan& plan, const Profile& profile,
                         std::map<std::string, std::string> inputs);

  // Goes on with one: drives it if it was left running; if it failed, begins an attempt in which
  // nothing that succeeded is done again. kConflict: another process drives it, it is completed, or
  // the plan is not the one it began with (the message says in what).
  Result<RunState> Resume(const std::string& id, const Plan& plan, const ResumeOptions& options,
                          std::stop_token stop);

  // Drives a run that Start or Resume has given until it has ended or a stop is requested, with
  // this many calls at once.
  Result<RunState> Drive(const RunState& run, int threads, std::stop_token stop);

  // Keeps a run ours for as long as a lease, or lets go of it. Drive does that by itself; it is for
  // whoever drives the run's execution in another way. A run that is not ours is left alone.
  void Renew(const std::string& id, bool release);

  // Ends one that runs; what it has started is cancelled as far as that is possible.
  Status Cancel(const std::string& id);

  // kNotFound: there is none.
  Result<RunState> Find(const std::string& id);
  Result<std::vector<RunState>> List(const std::string& after, int limit);

 private:
  Result<Record> Read(const std::string& id);
  Result<RunState> Describe(const Record& record);
  Status Begin(const Plan& plan, const RunState& run, const Json& done);
  Result<Json> DoneSoFar(const Plan& plan, const RunState& run, Json done);
  Result<Record> Take(const std::string& id, std::stop_token stop);

  Store& store_;
  States& states_;
  Env& env_;
  const std::string owner_;
};

}  // namespace muster::plan
