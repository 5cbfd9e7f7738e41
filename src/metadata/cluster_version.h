#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_names.h"
#include "core/json.h"
#include "muster/result.h"

namespace muster::metadata {

enum class Engine { kElasticsearch, kOpenSearch };
inline constexpr EnumNames<Engine, 2> kEngines{{{
    {Engine::kElasticsearch, "elasticsearch"},
    {Engine::kOpenSearch, "opensearch"},
}}};

// What kind of cluster, and which version, as far as rules depend on it.
struct ClusterVersion {
  std::optional<Engine> engine = {};  // none: unknown
  int major = 0;
  int minor = 0;

  // "elasticsearch 6.8", as ToString writes it. Anything else is unknown.
  static ClusterVersion Parse(std::string_view text);
  // By the response to GET /.
  static ClusterVersion FromRoot(const Json& about);
  // By the number with which a snapshot records the version of its cluster.
  static ClusterVersion FromId(int64_t id);

  bool IsKnown() const { return engine.has_value(); }
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

  Engine engine_ = Engine::kElasticsearch;
  std::vector<Bound> bounds_;
};

}  // namespace muster::metadata
