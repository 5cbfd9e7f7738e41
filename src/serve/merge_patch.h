#pragma once

#include <string>

#include "core/json.h"

namespace muster::serve {

// The JSON merge patch (RFC 7396) that makes `after` of `before`: null where they are equal.
// Neither may contain a null, which a patch cannot express.
Json MergePatch(const Json& before, const Json& after);

// Adds a member that does not exist yet, without checking: the objects here can be large.
void AppendMember(Json& object, const std::string& key, Json value);

}  // namespace muster::serve
