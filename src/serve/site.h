#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "muster/env.h"
#include "muster/events.h"
#include "muster/result.h"
#include "muster/states.h"
#include "muster/store.h"
#include "plan/plan.h"        // IWYU pragma: export
#include "replica/replica.h"  // IWYU pragma: export

namespace muster::serve {

// A store that is served.
struct SiteStore {
  std::string number;  // its name in paths: "0", "1", …
  std::string url;     // without secrets
  store::Store* store = nullptr;
  std::unique_ptr<store::Store> own = {};
  std::unique_ptr<states::States> states = {};  // without executors; MigrationDriver has them
  std::unique_ptr<plan::Runs> runs = {};
  std::function<std::unique_ptr<states::TaskExecutor>()> make_executor = {};
};

// A replica set whose file is known, with its log and read models.
struct SiteReplica {
  std::string path;
  std::string store;  // its number
  replica::ReplicaFile file;
  std::vector<std::string> projections;
  std::unique_ptr<events::EventLog> log;
  std::unique_ptr<replica::ReadModel> model;
};

struct SiteOptions {
  std::vector<std::string> stores;         // URLs
  store::Store* shared = nullptr;          // the first of them, where this process has it open
  std::vector<std::string> replica_files;  // their stores are served as well
  std::string dead_letters = ".";          // a folder
  // Makes what calls the tasks of migrations that this server drives, for the store of a URL.
  std::function<std::unique_ptr<states::TaskExecutor>(const std::string& url)> make_executor;
  // Whether this process could resume a migration; none: nothing is checked before it begins.
  std::function<Status(const plan::RunState& run)> check_run = {};
};

// Everything that is served. Thread-safe once open.
class Site {
 public:
  // Fails when a store or a set cannot be opened. `env` must outlive it.
  static Result<std::unique_ptr<Site>> Open(const SiteOptions& options, Env& env);

  Env& env() const { return env_; }
  const std::vector<SiteStore>& stores() const { return stores_; }
  const std::string& dead_letters() const { return dead_letters_; }
  Status CheckRun(const plan::RunState& run) const {
    return check_run_ ? check_run_(run) : Status();
  }

  // kNotFound: no such store.
  Result<const SiteStore*> FindStore(const std::string& number) const;
  // Null: its file is not known.
  const SiteReplica* FindReplica(const std::string& store, const std::string& set) const;

 private:
  explicit Site(Env& env) : env_(env) {}
  Result<std::string> AddStore(const std::string& url, store::Store* shared,
                               const SiteOptions& options);

  Env& env_;
  std::vector<SiteStore> stores_;
  std::vector<SiteReplica> replicas_;
  std::string dead_letters_;
  std::function<Status(const plan::RunState& run)> check_run_;
};

// Times in answers.
inline int64_t Ms(WallTime time) { return time.time_since_epoch().count(); }

// The equivalent command line, for this store.
std::string CommandOn(const SiteStore& store, const std::string& command);

// An argument as a shell reads it.
std::string Quoted(const std::string& argument);

}  // namespace muster::serve
