#pragma once

#include <memory>
#include <string>

#include "side.h"
#include "support/opensearch_server.h"
#include "table.h"

namespace muster::bench {

// The documents of a namespace, written by _bulk.
std::unique_ptr<Table> OpenSearchTable(const testing::OpenSearchServer& server,
                                       const std::string& space);

// What OpenSearch itself can do: one connection for each worker, which claims documents that it
// knows beforehand by one _bulk and completes them by another, both conditional.
std::unique_ptr<Side> RawOpenSearch(const testing::OpenSearchServer& server,
                                    const std::string& space);

}  // namespace muster::bench
