#include "pipeline/flow/kept_source.h"

#include "core/json_fields.h"

namespace muster::pipeline {

KeptSource KeptSourceIn(const Json& mappings) {
  const Json& source = MemberIn(mappings, "_source");
  const Json& enabled = MemberIn(source, "enabled");
  if (enabled == false || enabled == "false") return KeptSource::kNothing;
  for (const char* list : {"includes", "excludes"}) {
    const Json& names = MemberIn(source, list);
    if (names.is_string() || (names.is_array() && !names.empty())) return KeptSource::kPruned;
  }
  return KeptSource::kAll;
}

}  // namespace muster::pipeline
