#pragma once

#include <string>

#include "core/yaml.h"
#include "plan/model/fields.h"
#include "plan/model/plan.h"

namespace muster::plan {

// Prices of services, from a map of fields; missing ones keep their defaults.
Prices ReadPriceFields(const YamlNode& node, Problems& problems);

// The same from a separate file. kInvalid lists every mistake.
Result<Prices> ReadPriceFile(const std::string& path);

}  // namespace muster::plan
