#pragma once

#include <string>
#include <string_view>

#include "muster/result.h"
#include "pipeline/table/number_rule.h"

namespace muster::pipeline {

// Appends a JSON array as a PostgreSQL literal: [[1,null],["a b",{}]] is {{1,NULL},{"a b","{}"}}.
// An error also: a number that `rule` does not keep.
Status AppendPgArray(std::string_view json, const NumberRule& rule, std::string& out);

}  // namespace muster::pipeline
