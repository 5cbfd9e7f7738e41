#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/json.h"

namespace muster::metadata {

// Settings of an index under their full names, {"index.number_of_shards": "1"}: clusters show and
// accept them nested, flat or mixed, with and without "index". Lists that old versions wrote as one
// setting per element become lists.
Json FlatSettings(const Json& settings);

// Removes members; returns their names.
std::vector<std::string> EraseIf(Json& object, const std::function<bool(const std::string&)>& goes);

}  // namespace muster::metadata
