#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"
#include "script/js.h"

namespace muster::script {

// JSONata as in AWS Step Functions: the reference implementation, with $partition, $range,
// $hash, $random(seed), $uuid and $parse, without $eval.
//
//   Jsonata jsonata(env);
//   jsonata.Evaluate("$sum($states.input.prices)", {{"states", &states}});
//
// Numbers are 64-bit floats, as in AWS. An integer beyond 2^53 that an expression only moves keeps
// its digits; what is computed or compared with it is rounded. Clock and randomness come from the
// Env.
//
// Thread-safe. Concurrent evaluations get an engine each, which caches compiled expressions. `env`
// must outlive it.
class Jsonata {
 public:
  static constexpr JsLimits kLimits{.time = std::chrono::milliseconds(5'000),
                                    .memory_bytes = size_t{128} << 20,
                                    .stack_bytes = size_t{3} << 20};

  explicit Jsonata(Env& env, const JsLimits& limits = kLimits);
  ~Jsonata();

  // Values by variable name, without the `$`.
  using Bindings = std::vector<std::pair<std::string, const Json*>>;

  // The value of an expression; none if undefined. `input` is what `$` and plain names refer to;
  // Step Functions has none.
  //
  // kInvalid: JSONata's code and message ("T1006: Attempted to invoke a non-function"), or a limit
  // ("stopped after 5000 ms"). kIncompatible: the value contains a function, which is not JSON.
  Result<std::optional<Json>> Evaluate(const std::string& expression, const Bindings& bindings,
                                       const Json* input = nullptr);

  // Whether an expression parses. kInvalid: JSONata's code, message and position: `S0203: Expected
  // ")" before end of expression (at character 8)`.
  Status Check(const std::string& expression);

 private:
  Result<Json> Ask(const Json& request, std::string_view bindings, std::string_view input);
  Result<std::unique_ptr<JsFunction>> Borrow();

  Env& env_;
  const JsLimits limits_;
  Mutex mutex_;
  std::vector<std::unique_ptr<JsFunction>> idle_ GUARDED_BY(mutex_);
};

}  // namespace muster::script
