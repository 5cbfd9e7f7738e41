#pragma once

#include <string>

#include "lucene/lucene.h"
#include "muster/result.h"
#include "pipeline/snapshot/rebuild_plan.h"

namespace muster::pipeline {

// Appends a value as JSON. kIncompatible: it cannot be written exactly, or is not one of its type.
Status AppendRebuiltValue(const RebuiltField& field, const lucene::IndexedValue& value,
                          std::string& out);

}  // namespace muster::pipeline
