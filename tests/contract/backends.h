#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/store.h"

namespace muster::testing {

// One kind of store under the contract: opens stores that share their content with one another.
class Backend {
 public:
  virtual ~Backend() = default;

  // The store of a namespace. `env` is the caller's, which the store must not use for its time.
  virtual std::unique_ptr<store::Store> Open(const std::string& space, Env& env) = 0;

  // The URL by which other processes open the same store; empty where they cannot.
  virtual std::string Url(const std::string& /*space*/) { return {}; }

  // An Env with this store's time: virtual if the store's time is virtual.
  virtual Env& World() { return RealEnv(); }
};

// In backends.cc "memory", "sqlite", "postgresql", "opensearch" and "dynamodb", in
// simulated_backend.cc "simulated": a test program links one of the two.
std::vector<std::string> BackendNames();

// A backend with an empty store. Servers are started once per process. nullptr: not available here;
// `reason` says why.
std::unique_ptr<Backend> NewBackend(const std::string& name, std::string* reason);

}  // namespace muster::testing
