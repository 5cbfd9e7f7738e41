#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace muster::pipeline {

// Whether a server's pattern matches the whole text: '*' stands for any number of characters.
bool MatchesStars(std::string_view pattern, std::string_view text);

// Which indices a source's URL selects, as the server reads it: names of indices, aliases and data
// streams, separated by commas, with '*'; -NAME excludes. Empty: all.
class IndexPattern {
 public:
  explicit IndexPattern(std::string text);

  const std::string& text() const { return text_; }
  bool IsAll() const { return text_.empty(); }

  // As part of a request's path.
  std::string Path() const;

  // Whether an index that the server returned is meant: names that begin with a dot must be asked
  // for with the dot, or by an alias in full.
  bool Selects(const std::string& index, const Json& aliases) const;
  bool SelectsDataStream(const std::string& name) const { return Names(name); }

  // Whether a part of it is this name, or matches it: with a dot, if the name begins with one.
  bool Names(const std::string& name) const;

  // The alias that selects an index, if its name does not, and if that alias shows only some of its
  // documents: it has a filter or a routing. `aliases` are those of the index.
  std::optional<std::string> PartialAlias(const std::string& index, const Json& aliases) const;

 private:
  const std::string text_;
  std::vector<std::string> parts_;  // without exclusions
};

}  // namespace muster::pipeline
