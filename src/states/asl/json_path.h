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

// A JSONPath as AWS evaluates it (which is as Jayway's Java library does): child, index, slice,
// wildcard, deep scan and filter steps from "$". Immutable, cheap to copy, safe to share.
class JsonPath {
 public:
  // Reads a path. kInvalid says what is wrong at which character.
  static Result<JsonPath> Parse(std::string_view text);

  const std::string& text() const { return text_; }

  // Whether it can name one node only: then Find gives that node and not a list.
  bool definite() const { return definite_; }

  // Whether it may be written to: children and array elements, one of each.
  bool IsReference() const;

  bool IsRoot() const { return steps_.empty(); }

  // The node of a definite path, or null if there is none. Nothing is copied.
  const Json* FindNode(const Json& root) const;

  // The value of a definite path, or all that an indefinite one matches, as an array. The error is
  // why there is none, in Jayway's words.
  Expected<Json, std::string> Find(const Json& root) const;

  // Puts a value where a reference path points to, making the objects on the way there. False:
  // something on the way is neither an object nor an array with that element.
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
