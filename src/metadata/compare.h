#pragma once

#include <string>
#include <vector>

#include "metadata/object.h"

namespace muster::metadata {

// Differences between an object as it should be and as a cluster has it, one per member: "settings
// index.number_of_shards: 1, not 2". Both as verdicts of rules, without what belongs to one cluster
// alone. Defaults do not count, whether a cluster shows them or not.
struct Differences {
  std::vector<std::string> wanted;  // missing in the cluster, or different there
  std::vector<std::string> extra;   // only in the cluster: a field that documents have added, say
};

Differences Compare(Kind kind, const Json& wanted, const Json& found);

// A member of an object by its path, "mappings _source.excludes", with its value as text.
struct Member {
  std::string path;
  std::string value;
  bool is_other = false;  // `wanted` has it with another value
};

// The members that a cluster's object has beyond `wanted`, or with another value.
std::vector<Member> Additions(Kind kind, const Json& wanted, const Json& found);

}  // namespace muster::metadata
