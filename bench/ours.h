#pragma once

#include <memory>
#include <string>

#include "must.h"
#include "muster/store.h"
#include "side.h"

namespace muster::bench {

std::unique_ptr<store::Store> MustOpen(const std::string& url);

// A claim as a worker makes it.
store::ClaimRequest NewClaim(int limit);

// The load through the store: one thread for each worker. `store` must outlive the side.
std::unique_ptr<Side> Ours(store::Store& store);

}  // namespace muster::bench
