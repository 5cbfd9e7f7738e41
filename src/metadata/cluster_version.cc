#include "metadata/cluster_version.h"

#include <optional>
#include <utility>

#include "core/json_fields.h"
#include "core/number.h"

namespace muster::metadata {
namespace {

// Major and minor of "7.10.2" or "7"; none: it is not a version.
std::optional<std::pair<int, int>> NumbersOf(std::string_view text) {
  const size_t dot = text.find('.');
  const auto major = ParseNumber<int>(text.substr(0, dot));
  if (!major) return std::nullopt;
  if (dot == std::string_view::npos) return std::pair(*major, 0);
  const std::string_view rest = text.substr(dot + 1);
  const auto minor = ParseNumber<int>(rest.substr(0, rest.find('.')));
  if (!minor) return std::nullopt;
  return std::pair(*major, *minor);
}

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t start = text.find_first_not_of(' ');
    if (start == std::string_view::npos) return words;
    text.remove_prefix(start);
    words.push_back(text.substr(0, text.find(' ')));
    text.remove_prefix(words.back().size());
  }
}

}  // namespace

ClusterVersion ClusterVersion::Parse(std::string_view text) {
  const auto words = WordsOf(text);
  const auto engine = words.size() == 2 ? kEngines.Find(words[0]) : std::nullopt;
  const auto numbers = engine ? NumbersOf(words[1]) : std::nullopt;
  if (!numbers) return {};
  return {engine, numbers->first, numbers->second};
}

ClusterVersion ClusterVersion::FromRoot(const Json& about) {
  const Json& version = MemberIn(about, "version");
  const auto numbers = NumbersOf(TextIn(version, "number"));
  if (!numbers) return {};
  // Elasticsearch does not name itself.
  if (TextIn(version, "distribution") != kEngines.NameOf(Engine::kOpenSearch))
    return {Engine::kElasticsearch, numbers->first, numbers->second};
  // OpenSearch 1 can pretend to be Elasticsearch 7.10, for old clients.
  if (numbers->first == 7) return {Engine::kOpenSearch, 1, 0};
  return {Engine::kOpenSearch, numbers->first, numbers->second};
}

ClusterVersion ClusterVersion::FromId(int64_t id) {
  constexpr int64_t kOpenSearchBit = 0x08000000;
  constexpr int64_t kMajor = 1'000'000;
  constexpr int64_t kMinor = 10'000;
  if (id <= 0) return {};
  const bool is_opensearch = (id & kOpenSearchBit) != 0;
  if (is_opensearch) id ^= kOpenSearchBit;
  const auto major = static_cast<int>(id / kMajor);
  auto minor = static_cast<int>(id / kMinor % 100);
  // Later Elasticsearch counts formats instead: of the version only the major number is known.
  if (!is_opensearch && major >= 8 && minor >= 50) minor = 0;
  return {is_opensearch ? Engine::kOpenSearch : Engine::kElasticsearch, major, minor};
}

std::string ClusterVersion::ToString() const {
  if (!IsKnown()) return "";
  return std::string(kEngines.NameOf(*engine)) + " " + std::to_string(major) + "." +
         std::to_string(minor);
}

Result<VersionRange> VersionRange::Parse(std::string_view text) {
  const auto words = WordsOf(text);
  const auto wrong = [&] {
    return Error{Code::kInvalid, "'" + std::string(text) + "' is not a range of versions",
                 "write elasticsearch or opensearch, then bounds: elasticsearch >=5 <7"};
  };
  const auto engine = words.empty() ? std::nullopt : kEngines.Find(words[0]);
  if (!engine) return wrong();
  VersionRange range;
  range.engine_ = *engine;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t digit = words[i].find_first_not_of("<>=");
    if (digit == std::string_view::npos) return wrong();
    const std::string relation(words[i].substr(0, digit));
    const auto numbers = NumbersOf(words[i].substr(digit));
    if (!numbers || (relation != "<" && relation != "<=" && relation != ">" && relation != ">=")) {
      return wrong();
    }
    range.bounds_.push_back({relation, numbers->first, numbers->second});
  }
  return range;
}

bool VersionRange::Includes(const ClusterVersion& version) const {
  if (version.engine != engine_) return false;
  const std::pair number(version.major, version.minor);
  for (const Bound& bound : bounds_) {
    const std::pair limit(bound.major, bound.minor);
    const bool holds = bound.relation == "<"    ? number < limit
                       : bound.relation == "<=" ? number <= limit
                       : bound.relation == ">"  ? number > limit
                                                : number >= limit;
    if (!holds) return false;
  }
  return true;
}

}  // namespace muster::metadata
