#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/result.h"
#include "states/run/failure.h"
#include "states/run/scope.h"

namespace muster::states {

struct Query;

// A call of an intrinsic function: "States.Format('{} of {}', $.a, States.ArrayLength($.b))".
struct Intrinsic {
  // A literal, a path, or another call.
  using Argument =
      std::variant<Json, std::shared_ptr<const Query>, std::shared_ptr<const Intrinsic>>;

  std::string text;
  std::string name;  // without "States."
  std::vector<Argument> arguments;

  // kInvalid: an unknown function, a wrong number of arguments, bad syntax, or more than ten nested
  // calls.
  static Result<std::shared_ptr<const Intrinsic>> Parse(std::string_view text);

  Fallible<Json> Evaluate(const Scope& scope) const;

  // Of a Format with a literal template: the literal pieces of the text, with an argument between
  // each two. Empty: any other call.
  std::vector<std::string> LiteralPieces() const;
};

}  // namespace muster::states
