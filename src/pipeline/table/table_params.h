#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/url.h"
#include "muster/result.h"

namespace muster::pipeline {

// URL parameters common to all table sources.

// ?key=COLUMN,COLUMN; empty: not given.
std::vector<std::string> KeyParam(const Url& url);

// ?partitions=N, from 1 to 10,000; 0: not given.
Result<int64_t> PartitionsParam(const Url& url);

}  // namespace muster::pipeline
