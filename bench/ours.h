#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "muster/store.h"
#include "side.h"

namespace muster::bench {

std::unique_ptr<Store> MustOpen(const std::string& url);

template <class T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return *std::move(result);
}

// A claim as a worker makes it.
ClaimRequest NewClaim(int limit);

// The load through the store: one thread for each worker. `store` must outlive the side.
std::unique_ptr<Side> Ours(Store& store);

}  // namespace muster::bench
