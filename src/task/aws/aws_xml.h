#pragma once

#include <string_view>

#include "core/json.h"
#include "muster/result.h"

namespace muster::task {

// The tree of an XML response of AWS's query protocol. Elements become members, and their texts
// strings; children all called `member` become an array, children called `entry` with a key and a
// value an object. Other children with the same name become an array too. Attributes, comments and
// processing instructions are dropped. At most 50 levels deep.
//
// kCorrupt: not well-formed.
Result<Json> ParseAwsXml(std::string_view xml);

}  // namespace muster::task
