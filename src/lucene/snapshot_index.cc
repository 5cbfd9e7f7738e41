#include "core/json_fields.h"
#include "lucene/repository.h"

namespace muster::lucene {

bool SnapshotIndex::HasMeta(std::string_view member) const {
  for (const Json& mapping : mappings) {
    if (!mapping.is_object()) continue;
    for (const auto& [type, fields] : mapping.items()) {
      const Json& meta = MemberIn(fields, "_meta");
      if (meta.is_object() && meta.contains(member)) return true;
    }
  }
  return false;
}

bool SnapshotIndex::IsHidden() const { return TextIn(settings, "index.hidden") == "true"; }

namespace {

// Wrapped twice under its own name.
const Json& StreamsIn(const Json& global) {
  const Json& streams = MemberIn(global, "data_stream");
  const Json& inner = MemberIn(streams, "data_stream");
  return inner.is_object() ? inner : streams;
}

}  // namespace

BackingIndices BackingIndicesOf(const Json& global) {
  BackingIndices backing;
  for (const auto& [name, about] : StreamsIn(global).items()) {
    for (const std::string& index : IndicesOfStream(global, name)) backing[index] = name;
  }
  return backing;
}

std::vector<std::string> IndicesOfStream(const Json& global, const std::string& stream) {
  std::vector<std::string> indices;
  for (const Json& index : MemberIn(MemberIn(StreamsIn(global), stream), "indices")) {
    const std::string name = TextIn(index, "index_name");
    if (!name.empty()) indices.push_back(name);
  }
  return indices;
}

}  // namespace muster::lucene
