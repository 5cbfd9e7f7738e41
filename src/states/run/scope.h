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

// A value that is handed from state to state without being copied.
using Value = std::shared_ptr<const Json>;

inline Value MakeValue(Json json) { return std::make_shared<const Json>(std::move(json)); }

using Variables = std::map<std::string, Value>;

// What an expression can see. It refers to what its owner keeps alive, for the time of one
// evaluation.
struct Scope {
  const Json* input = nullptr;           // "$", or $states.input
  const Variables* variables = nullptr;  // "$name"
  // "$$", made when first asked for. The input of the execution in it may be large: without `whole`
  // it may be left out.
  std::function<const Json&(bool whole)> context;
  const Json* execution_input = nullptr;  // what would be left out
  const Json* result = nullptr;           // $states.result
  const Json* error_output = nullptr;     // $states.errorOutput
  Env* env = nullptr;                     // chance
  JsonataEngine* jsonata = nullptr;
};

}  // namespace muster::states
