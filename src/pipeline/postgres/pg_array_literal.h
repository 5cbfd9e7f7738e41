#pragma once

#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster::pipeline {

// Appends a JSON array as a PostgreSQL literal: [[1,null],["a b",{}]] is {{1,NULL},{"a b","{}"}}.
Status AppendPgArray(std::string_view json, std::string& out);

}  // namespace muster::pipeline
