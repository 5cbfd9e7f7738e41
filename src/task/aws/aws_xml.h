#pragma once

#include <string_view>

#include "core/json.h"
#include "muster/result.h"

namespace muster::task {

// The tree of an XML answer of AWS's query protocol. Elements become members, their texts strings;
// children that are all called `member` become an array, children called `entry` with a key and a
// value an object. Of other children with the same name an array is made. Attributes, comments and
// processing instructions are dropped. Nested at most 50 deep.
//
// kCorrupt: it is not well-formed.
Result<Json> ParseAwsXml(std::string_view xml);

}  // namespace muster::task
