#pragma once

#include <string>
#include <vector>

#include "metadata/object.h"

namespace muster::metadata {

// A policy of Elasticsearch's index lifecycle management as one of OpenSearch's index state
// management: a phase becomes a state, its min_age the transition to it. `object`'s body is
// {"policy"}, with the "index_patterns" of templates that name it, which the new policy then
// applies to. What has no counterpart is left out and reported. `changes` are earlier ones.
Verdict ToIsmPolicy(const Object& object, std::vector<std::string> changes);

}  // namespace muster::metadata
