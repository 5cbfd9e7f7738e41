#pragma once

#include <vector>

#include "support/opensearch_server.h"

namespace muster::bench {

// How many writes were refused because another was faster, in each of `rounds` in which so many
// workers, each with a store of its own as if it were a process, claim one of as many items at
// once.
std::vector<int> MeasureCollisions(const testing::OpenSearchServer& server, int workers,
                                   int rounds);

}  // namespace muster::bench
