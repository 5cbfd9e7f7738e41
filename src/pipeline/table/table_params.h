#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/url.h"
#include "muster/result.h"

namespace muster::pipeline {

// URL parameters common to tables.

// ?key=COLUMN,COLUMN; empty: not given.
std::vector<std::string> KeyParam(const Url& url);

// ?partitions=N, from 1 to 10,000; 0: not given.
Result<int64_t> PartitionsParam(const Url& url);

// Values that do not get through unchanged: numbers that a column of the target would round, or
// values of a SQLite source that JSON cannot carry with their storage class.
enum class Misfits {
  kRefuse,   // a dead letter
  kConvert,  // as the database, or the source, converts them
};

// ?misfits=refuse or convert; refuse if not given. `what` names the URL: "sink URL".
Result<Misfits> MisfitsParam(const Url& url, std::string_view what);

}  // namespace muster::pipeline
