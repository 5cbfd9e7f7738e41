#pragma once

#include <string>
#include <vector>

#include "metadata/object.h"
#include "metadata/rule_set.h"
#include "metadata/target.h"
#include "muster/result.h"

namespace muster::metadata {

// What an index has beyond the request, one member each: "mappings dynamic: strict".
struct IndexAdditions {
  // With these, documents would lose fields, be changed or refused, or writes to an alias would go
  // elsewhere.
  std::vector<std::string> harmful;
  std::vector<std::string> others;
};

// Of an index as GET /NAME shows it. `rules` remove what belongs to one cluster alone.
IndexAdditions AdditionsTo(const Json& wanted, const Json& found, const RuleSet& rules,
                           const ClusterVersion& version);

// What the cluster's templates would give to an index of this name that is harmful and that `body`
// does not override.
Result<std::vector<std::string>> HarmfulTemplates(Target& target, const std::string& name,
                                                  const Json& body);

struct CreatedIndex {
  std::vector<std::string> dropped;  // settings that the cluster does not know
  std::vector<std::string> added;    // by its templates, harmless
};

// Creates an index, unless the cluster's templates add something harmful: then none is created, and
// kInvalid says what they add. kConflict: it was created concurrently.
Result<CreatedIndex> CreateIndex(Target& target, const RuleSet& rules, const std::string& name,
                                 const Json& body);

// The same error, if `harmful` is not empty.
Status CheckTemplates(const std::string& name, const std::vector<std::string>& harmful);

// The first few, in one line.
std::string Joined(const std::vector<std::string>& texts);

}  // namespace muster::metadata
