#include "serve/site.h"

#include <algorithm>
#include <cctype>

#include "core/secrets.h"

namespace muster::serve {

Result<std::string> Site::AddStore(const std::string& url, store::Store* shared,
                                   const SiteOptions& options) {
  const std::string shown = Redact(url);
  for (const SiteStore& store : stores_) {
    if (store.url == shown) return store.number;
  }
  SiteStore& added = stores_.emplace_back();
  added.number = std::to_string(stores_.size() - 1);
  added.url = shown;
  added.store = shared;
  if (shared == nullptr) {
    MUSTER_ASSIGN(added.own, store::OpenStore(url, env_));
    added.store = added.own.get();
  }
  added.make_executor = [make = options.make_executor, url] { return make(url); };
  added.states = std::make_unique<states::States>(
      *added.store, std::vector<states::TaskExecutor*>(), states::StatesOptions{}, env_);
  added.runs = std::make_unique<plan::Runs>(*added.store, *added.states, env_);
  return added.number;
}

Result<std::unique_ptr<Site>> Site::Open(const SiteOptions& options, Env& env) {
  std::unique_ptr<Site> site(new Site(env));
  site->dead_letters_ = options.dead_letters;
  site->check_run_ = options.check_run;
  store::Store* shared = options.shared;
  for (const std::string& url : options.stores) {
    MUSTER_TRY(site->AddStore(url, std::exchange(shared, nullptr), options));
  }
  for (const std::string& path : options.replica_files) {
    SiteReplica replica;
    replica.path = path;
    MUSTER_ASSIGN(replica.file, replica::ReadReplicaFile(path, env));
    const std::string url =
        replica.file.store.value_or(options.stores.empty() ? "" : options.stores.front());
    MUSTER_ASSIGN(replica.store, site->AddStore(url, nullptr, options));
    MUSTER_ASSIGN(replica.log,
                  events::OpenEventLog(replica.file.events, replica.file.event_options, env));
    MUSTER_ASSIGN(replica.model, replica::OpenReadModel(replica.file.read_model, env));
    for (const auto& projection : replica.file.projections) {
      replica.projections.push_back(projection->name());
    }
    site->replicas_.push_back(std::move(replica));
  }
  return site;
}

Result<const SiteStore*> Site::FindStore(const std::string& number) const {
  for (const SiteStore& store : stores_) {
    if (store.number == number) return &store;
  }
  return Error{Code::kNotFound, "unknown store '" + number + "'", "see /api/v1/session"};
}

const SiteReplica* Site::FindReplica(const std::string& store, const std::string& set) const {
  for (const SiteReplica& replica : replicas_) {
    if (replica.store == store && replica.file.options.set == set) return &replica;
  }
  return nullptr;
}

std::string Quoted(const std::string& argument) {
  const bool plain = !argument.empty() && std::all_of(argument.begin(), argument.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./:=@%+,").find(c) != std::string_view::npos;
  });
  if (plain) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string CommandOn(const SiteStore& store, const std::string& command) {
  return "muster " + command + " --store " + Quoted(store.url);
}

}  // namespace muster::serve
