#pragma once

namespace muster::bench {

// Where bench/fetch_elasticdump puts it.
inline constexpr const char* kElasticdump =
    MUSTER_THIRD_PARTY "/elasticdump/node_modules/.bin/elasticdump";

}  // namespace muster::bench
