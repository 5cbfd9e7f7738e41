#include "pipeline/snapshot/kept_fields.h"

#include <algorithm>

#include "core/json_fields.h"

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

// `*` stands for any text, dots included.
bool Matches(std::string_view pattern, std::string_view path) {
  size_t p = 0;
  size_t at = 0;
  size_t star = std::string_view::npos;
  size_t after = 0;
  while (at < path.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = at;
    } else if (p < pattern.size() && pattern[p] == path[at]) {
      ++p;
      ++at;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      at = ++after;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

// Also by an object that it is in.
bool AnyMatches(const std::vector<std::string>& patterns, std::string_view path) {
  for (size_t end = 0; end != std::string_view::npos;) {
    end = path.find('.', end + 1);
    const std::string_view part = path.substr(0, end);
    if (std::any_of(patterns.begin(), patterns.end(),
                    [&](const std::string& pattern) { return Matches(pattern, part); })) {
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
