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

// A JSON value with parts that are computed: Parameters, ResultSelector, Arguments, Output, Assign.
// Immutable once it was read.
class Template {
 public:
  // Reads a payload template. `field` is its name in the definition. What is wrong goes to the
  // source's problems.
  static Template ReadJsonPath(const Node& node, Source& source);
  static Template ReadJsonata(const Node& node, const std::string& field, Source& source,
                              JsonataEngine* jsonata);

  Fallible<Value> Evaluate(const Scope& scope) const;

  // Each member of an object by itself, as Assign needs them.
  Fallible<Variables> EvaluateMembers(const Scope& scope) const;

  // Where the value has references to secrets that stand in the template itself: by JSON pointer,
  // the pieces of the text which are the template's own. What a path or JSONata gives is data and
  // has none; of a States.Format with a literal template, those of the template count.
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
  std::string field_;  // what AWS calls this place
  std::vector<std::pair<std::string, Template>> members_;
  std::vector<Template> items_;
};

// Reads one string of JSONata, "{% … %}", and reports what is wrong with it.
std::optional<Query> ReadJsonataText(const Node& node, Source& source, JsonataEngine* jsonata);

}  // namespace muster::states
