#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "core/json.h"
#include "muster/states.h"

namespace muster::sim {

// The state machine of the workload `states`. It has everything that keeps state across crashes:
// branches, iterations, backoff, a caught failure, a timer, a callback, and a notification that may
// fail without harm.
extern const char kStatesDefinition[];

// As in the definition.
struct RetryTerms {
  std::chrono::seconds interval;
  int64_t most;
};
const std::map<std::string, RetryTerms>& StatesRetries();
inline constexpr int kNotifyRetries = 2;
inline constexpr std::chrono::seconds kRest{20};
inline constexpr int kConcurrency = 2;

// The number of retries before the call with this token.
int64_t RetryOf(const std::string& token);

// The result of a call. It depends on the state, the input and the number of retries alone, so that
// a repeated call has the same.
states::TaskOutcome AnswerOf(const states::TaskCall& call);

// The machine's end when nothing goes wrong.
struct ExpectedEnd {
  states::ExecutionStatus status = states::ExecutionStatus::kRunning;
  Json output;
};
ExpectedEnd ExpectedOf(const Json& input);

}  // namespace muster::sim
