#pragma once

#include <memory>
#include <string>

#include "must.h"
#include "muster/store.h"
#include "side.h"

namespace muster::bench {

std::unique_ptr<Store> MustOpen(const std::string& url);

// A claim as a worker makes it.
ClaimRequest NewClaim(int limit);

// The load through the store: one thread for each worker. `store` must outlive the side.
std::unique_ptr<Side> Ours(Store& store);

}  // namespace muster::bench
