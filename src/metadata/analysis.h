#pragma once

#include <string>
#include <vector>

#include "core/json.h"

namespace muster::metadata {

// Renames types of tokenizers, filters and analyzers, {"filter": {"nGram": "ngram"}}, in flat
// settings: where they are defined and where analyzers name them. Null: it no longer exists, and is
// left out of the analyzers. Returns the names of the settings that have changed.
std::vector<std::string> RenameAnalysis(const Json& types, Json& settings);

}  // namespace muster::metadata
