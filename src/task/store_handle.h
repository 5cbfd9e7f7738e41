#pragma once

#include <memory>
#include <string>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::task {

// The store that executors share: one that is open, or a URL that is opened when first needed.
// Copies share what was opened. Thread-safe.
class StoreHandle {
 public:
  // Implicit, as executors are made with either. An open store must outlive the handle.
  StoreHandle(store::Store& store);  // NOLINT(google-explicit-constructor)
  StoreHandle(std::string url);      // NOLINT(google-explicit-constructor)

  // A failure to open is not remembered: the next call tries again.
  Result<store::Store*> Open(Env& env) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster::task
