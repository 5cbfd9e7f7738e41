#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/json.h"
#include "muster/env.h"
#include "states/asl/jsonata_engine.h"

namespace muster::states {

// A value that is passed from state to state without a copy.
using Value = std::shared_ptr<const Json>;

inline Value MakeValue(Json json) { return std::make_shared<const Json>(std::move(json)); }

using Variables = std::map<std::string, Value>;

// What an expression can see. Refers to values that its owner keeps alive during one evaluation.
struct Scope {
  const Json* input = nullptr;           // "$", or $states.input
  const Variables* variables = nullptr;  // "$name"
  // "$$", made on first use. Without `whole`, it may lack the execution's input, which may be
  // large.
  std::function<const Json&(bool whole)> context;
  const Json* execution_input = nullptr;  // that it may lack
  const Json* result = nullptr;           // $states.result
  const Json* error_output = nullptr;     // $states.errorOutput
  Env* env = nullptr;                     // for random numbers
  JsonataEngine* jsonata = nullptr;
};

}  // namespace muster::states
