#pragma once

#include <string>

#include "muster/result.h"

namespace muster::cli {

// For commands about what a store already has: a SQLite file that does not exist is kNotFound, not
// an empty store. Other stores report it themselves when they are opened.
Status CheckStoreExists(const std::string& url);

}  // namespace muster::cli
