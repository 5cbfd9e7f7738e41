#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/result.h"
#include "states/asl/query.h"
#include "states/asl/source.h"
#include "states/run/failure.h"

namespace muster::states {

using SecretPieces = std::map<std::string, std::vector<std::string>>;

// A JSON value with computed parts: Parameters, ResultSelector, Arguments, Output, Assign.
// Immutable once read.
class Template {
 public:
  // Reads a payload template. `field` is its name in the definition. Problems are added to the
  // source.
  static Template ReadJsonPath(const Node& node, Source& source);
  static Template ReadJsonata(const Node& node, const std::string& field, Source& source,
                              JsonataEngine* jsonata);

  Fallible<Value> Evaluate(const Scope& scope) const;

  // Evaluates each member of an object separately, for Assign.
  Fallible<Variables> EvaluateMembers(const Scope& scope) const;

  // References to secrets that the template itself contains: by JSON pointer, the literal pieces of
  // the text. Results of paths and JSONata are data and have none; of a States.Format with a
  // literal template, the pieces of that template count.
  SecretPieces SecretReferences() const;

  // The names of the members of an object.
  std::vector<std::string> MemberNames() const;

 private:
  enum class Kind { kLiteral, kQuery, kObject, kArray };

  Fallible<Json> Build(const Scope& scope) const;
  void AddReferences(const std::string& pointer, SecretPieces& references) const;

  Kind kind_ = Kind::kLiteral;
  Value literal_;
  Query query_;
  std::string field_;  // as AWS's messages name this place
  std::vector<std::pair<std::string, Template>> members_;
  std::vector<Template> items_;
};

// Reads one string of JSONata, "{% … %}", and reports its problems.
std::optional<Query> ReadJsonataText(const Node& node, Source& source, JsonataEngine* jsonata);

}  // namespace muster::states
