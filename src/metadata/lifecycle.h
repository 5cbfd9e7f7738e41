#pragma once

#include <string>
#include <vector>

#include "metadata/object.h"

namespace muster::metadata {

// Converts a policy of Elasticsearch's index lifecycle management to one of OpenSearch's index
// state management: a phase becomes a state, its min_age the transition to it. `object`'s body is
// {"policy"}, with the "index_patterns" of the templates that name it, to which the new policy then
// applies. Parts without a counterpart are left out and reported. `changes` are earlier ones.
Verdict ToIsmPolicy(const Object& object, std::vector<std::string> changes);

}  // namespace muster::metadata
