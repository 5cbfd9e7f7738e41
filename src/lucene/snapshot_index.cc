#include "core/json_fields.h"
#include "lucene/repository.h"

namespace muster::lucene {

bool SnapshotIndex::IsHidden() const { return TextIn(settings, "index.hidden") == "true"; }

BackingIndices BackingIndicesOf(const Json& global) {
  BackingIndices backing;
  // Wrapped twice under its own name.
  const Json& streams = MemberIn(global, "data_stream");
  const bool is_wrapped = MemberIn(streams, "data_stream").is_object();
  for (const auto& [name, about] :
       (is_wrapped ? MemberIn(streams, "data_stream") : streams).items()) {
    for (const Json& index : MemberIn(about, "indices")) {
      const std::string of = TextIn(index, "index_name");
      if (!of.empty()) backing[of] = name;
    }
  }
  return backing;
}

}  // namespace muster::lucene
