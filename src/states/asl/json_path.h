#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "muster/result.h"

namespace muster::states {

struct FilterNode;

// A JSONPath with the semantics of AWS, which are those of Jayway's Java library: child, index,
// slice, wildcard, deep scan and filter steps from "$". Immutable, cheap to copy, safe to share.
class JsonPath {
 public:
  // Parses a path. kInvalid has the reason and the character.
  static Result<JsonPath> Parse(std::string_view text);

  const std::string& text() const { return text_; }

  // Whether it can match one node only: then Find returns that node, not a list.
  bool definite() const { return definite_; }

  // Whether it can be written to: it has only single children and array elements.
  bool IsReference() const;

  bool IsRoot() const { return steps_.empty(); }

  // The node of a definite path, without a copy. Null: no such node.
  const Json* FindNode(const Json& root) const;

  // The value of a definite path, or all matches of an indefinite one as an array. The error has
  // the text that Jayway's library would give.
  Expected<Json, std::string> Find(const Json& root) const;

  // Sets the value at a reference path, creating objects on the way. False: a node on the way is
  // neither an object nor an array with that element.
  bool Put(Json& root, Json value) const;

  struct Step {
    enum class Kind { kNames, kIndices, kSlice, kWildcard, kFilter };
    Kind kind = Kind::kNames;
    bool deep = false;  // of all descendants
    std::vector<std::string> names = {};
    std::vector<int64_t> indices = {};
    std::optional<int64_t> from = {};  // of a slice
    std::optional<int64_t> to = {};
    std::shared_ptr<const FilterNode> filter = {};
  };

 private:
  std::string text_;
  std::vector<Step> steps_;
  bool definite_ = true;
};

}  // namespace muster::states
