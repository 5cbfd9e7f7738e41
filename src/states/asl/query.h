#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/result.h"
#include "states/asl/intrinsic.h"
#include "states/asl/json_path.h"
#include "states/run/failure.h"
#include "states/run/scope.h"

namespace muster::states {

// An expression over what a state can see: a path into its input ("$.a"), the context
// ("$$.Execution.Name") or a variable ("$name.a"), an intrinsic function, or JSONata.
// Immutable and safe to share.
struct Query {
  enum class Kind { kInput, kContext, kVariable, kIntrinsic, kJsonata };
  Kind kind = Kind::kInput;
  std::string text;
  JsonPath path = {};
  // Of a path into the context: the rest of "$$.Execution.Input…", or whether it leads elsewhere.
  std::optional<JsonPath> in_execution_input = {};
  bool beside_execution_input = false;
  std::string variable = {};
  std::shared_ptr<const Intrinsic> intrinsic = {};

  // A path of any of the three kinds.
  static Result<Query> ParsePath(std::string_view text);

  // A path or an intrinsic function: the value of a key that ends in ".$".
  static Result<Query> ParsePathOrIntrinsic(std::string_view text);

  // "{% … %}".
  static bool LooksLikeJsonata(std::string_view text);
  static Result<Query> ParseJsonata(std::string_view text);

  // The node of a definite path, without a copy. Null: no such node, or not a definite path.
  const Json* FindNode(const Scope& scope) const;

  // `field`: the place in the definition as AWS's error messages name it: "value.$",
  // "Output/result".
  Fallible<Json> Evaluate(const Scope& scope, std::string_view field) const;

  // The value of a path. The error has the text that Jayway's library would give.
  Expected<Json, std::string> Find(const Scope& scope) const;

 private:
  const Json* Root(const Scope& scope) const;
  Fallible<Json> EvaluateJsonata(const Scope& scope, std::string_view field) const;
};

// JSONata's name for the type of a value.
std::string_view JsonataType(const Json& value);

}  // namespace muster::states
