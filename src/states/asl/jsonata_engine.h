#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster::states {

// Evaluates JSONata as Step Functions does: with its additional functions, without $eval, and
// within limits of time and memory.
//
// Thread-safe.
class JsonataEngine {
 public:
  virtual ~JsonataEngine() = default;

  using Bindings = std::vector<std::pair<std::string, const Json*>>;  // "$name" by name

  // The value; none: undefined. The error has JSONata's code and text: "T1006: Attempted to …".
  virtual Expected<std::optional<Json>, std::string> Evaluate(const std::string& expression,
                                                              const Bindings& bindings) = 0;

  // Whether it can be parsed.
  virtual Status Check(const std::string& expression) = 0;
};

// The reference implementation, see script/jsonata.h. `env` must outlive it.
std::unique_ptr<JsonataEngine> NewJsonataEngine(Env& env);

}  // namespace muster::states
