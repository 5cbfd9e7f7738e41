#include "pipeline/snapshot/kept_fields.h"

#include <algorithm>

#include "core/json_fields.h"
#include "pipeline/opensearch/index_pattern.h"

namespace muster::pipeline {
namespace {

std::vector<std::string> PatternsIn(const Json& names) {
  std::vector<std::string> patterns;
  if (names.is_string()) patterns.push_back(names.get<std::string>());
  if (!names.is_array()) return patterns;
  for (const Json& name : names) {
    if (name.is_string()) patterns.push_back(name.get<std::string>());
  }
  return patterns;
}

// Also by an object that it is in.
bool AnyMatches(const std::vector<std::string>& patterns, std::string_view path) {
  for (size_t end = 0; end != std::string_view::npos;) {
    end = path.find('.', end + 1);
    const std::string_view part = path.substr(0, end);
    if (std::any_of(patterns.begin(), patterns.end(),
                    [&](const std::string& pattern) { return MatchesStars(pattern, part); })) {
      return true;
    }
  }
  return false;
}

}  // namespace

KeptFields::KeptFields(const Json& source)
    : includes_(PatternsIn(MemberIn(source, "includes"))),
      excludes_(PatternsIn(MemberIn(source, "excludes"))) {
  const Json& enabled = MemberIn(source, "enabled");
  enabled_ = enabled != false && enabled != "false";
}

bool KeptFields::Keeps(std::string_view path) const {
  return enabled_ && (includes_.empty() || AnyMatches(includes_, path)) &&
         !AnyMatches(excludes_, path);
}

bool KeptFields::KeepsUnknown(std::string_view path, const std::vector<std::string>& mapped) const {
  if (!enabled_ || (path.empty() ? !includes_.empty() : !Keeps(path))) return false;
  const std::string under = path.empty() ? "" : std::string(path) + ".";
  return std::none_of(excludes_.begin(), excludes_.end(), [&](const std::string& pattern) {
    const size_t star = pattern.find('*');
    const std::string_view start = std::string_view(pattern).substr(0, star);
    if (star == std::string::npos) {
      // Of a field of the mapping it is known what is left out.
      return start.starts_with(under) &&
             std::find(mapped.begin(), mapped.end(), pattern) == mapped.end();
    }
    return start.starts_with(under) || under.starts_with(start);
  });
}

}  // namespace muster::pipeline
