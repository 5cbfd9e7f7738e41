#pragma once

#include <string>

#include "core/yaml.h"
#include "plan/model/fields.h"
#include "plan/model/plan.h"

namespace muster::plan {

// What services cost, from a map of fields; what is not given keeps its default.
Prices ReadPriceFields(const YamlNode& node, Problems& problems);

// The same from a file of its own. kInvalid says everything that is wrong with it.
Result<Prices> ReadPriceFile(const std::string& path);

}  // namespace muster::plan
