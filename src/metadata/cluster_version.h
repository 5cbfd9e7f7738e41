#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "muster/result.h"

namespace muster::metadata {

// What kind of cluster, and which version, as far as rules depend on it.
struct ClusterVersion {
  std::string engine = {};  // "elasticsearch" or "opensearch"; empty: unknown
  int major = 0;
  int minor = 0;

  // "elasticsearch 6.8", as ToString writes it. Anything else is unknown.
  static ClusterVersion Parse(std::string_view text);
  // By the response to GET /.
  static ClusterVersion FromRoot(const Json& about);
  // By the number with which a snapshot records the version of its cluster.
  static ClusterVersion FromId(int64_t id);

  bool IsKnown() const { return !engine.empty(); }
  std::string ToString() const;

  bool operator==(const ClusterVersion&) const = default;
};

// Versions of one engine: "opensearch", "elasticsearch >=5 <7", "opensearch <2.7".
class VersionRange {
 public:
  // kInvalid says what is wrong.
  static Result<VersionRange> Parse(std::string_view text);

  bool Includes(const ClusterVersion& version) const;

 private:
  struct Bound {
    std::string relation;  // <, <=, >, >=
    int major = 0;
    int minor = 0;
  };

  std::string engine_;
  std::vector<Bound> bounds_;
};

}  // namespace muster::metadata
