#include "pipeline/opensearch/index_pattern.h"

#include <algorithm>
#include <utility>

#include "core/url.h"

namespace muster::pipeline {
namespace {

bool IsPartial(const Json& alias) {
  return alias.is_object() && (alias.contains("filter") || alias.contains("search_routing"));
}

}  // namespace

bool MatchesStars(std::string_view pattern, std::string_view text) {
  size_t star = std::string_view::npos;
  size_t resume = 0;
  size_t p = 0;
  size_t t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

IndexPattern::IndexPattern(std::string text) : text_(std::move(text)) {
  for (size_t at = 0; at <= text_.size();) {
    const size_t comma = std::min(text_.find(',', at), text_.size());
    std::string part = text_.substr(at, comma - at);
    at = comma + 1;
    if (part.starts_with('-')) continue;
    parts_.push_back(part.empty() || part == "_all" ? "*" : std::move(part));
  }
}

// Commas and stars belong to the pattern; a slash would reach another API.
std::string IndexPattern::Path() const {
  if (text_.empty()) return "*";
  std::string path;
  for (const char c : text_) {
    path += c == '*' || c == ',' ? std::string(1, c) : PercentEncode(std::string_view(&c, 1));
  }
  return path;
}

bool IndexPattern::Names(const std::string& index) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const std::string& part) {
    return index.starts_with('.') == part.starts_with('.') && MatchesStars(part, index);
  });
}

bool IndexPattern::Selects(const std::string& index, const Json& aliases) const {
  // Also for what the server resolves, such as dates in names.
  if (!index.starts_with('.') || Names(index)) return true;
  return std::any_of(parts_.begin(), parts_.end(), [&](const std::string& part) {
    return aliases.is_object() && aliases.contains(part);
  });
}

std::optional<std::string> IndexPattern::PartialAlias(const std::string& index,
                                                      const Json& aliases) const {
  if (Names(index) || !aliases.is_object()) return std::nullopt;
  std::optional<std::string> partial;
  for (const auto& [alias, options] : aliases.items()) {
    const bool selected = std::any_of(
        parts_.begin(), parts_.end(),
        [&, &name = alias](const std::string& part) { return MatchesStars(part, name); });
    if (!selected) continue;
    if (!IsPartial(options)) return std::nullopt;
    if (!partial) partial = alias;
  }
  return partial;
}

}  // namespace muster::pipeline
