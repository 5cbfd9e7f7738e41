#pragma once

#include <string>

#include "base/yaml.h"
#include "plan/fields.h"
#include "plan/plan.h"

namespace muster::plan {

// What services cost, from a map of fields; what is not given keeps its default.
Prices ReadPriceFields(const YamlNode& node, Problems& problems);

// The same from a file of its own. kInvalid says everything that is wrong with it.
Result<Prices> ReadPriceFile(const std::string& path);

}  // namespace muster::plan
