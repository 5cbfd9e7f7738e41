#pragma once

#include <string>

#include "muster/result.h"

namespace muster::states {

// Why a state failed: an error name, which Retry and Catch match, and a cause for people. A Fail
// state may leave out either.
struct Failure {
  std::string error = {};
  std::string cause = {};
  // Raised by the interpreter, not by a task or a Fail state: as on AWS, the cause names the state.
  bool internal = true;
  // Of States.QueryEvaluationError: the field that could not be evaluated.
  std::string location = {};
};

template <class T>
using Fallible = Expected<T, Failure>;

inline constexpr char kRuntime[] = "States.Runtime";
inline constexpr char kQueryError[] = "States.QueryEvaluationError";
inline constexpr char kIntrinsicFailure[] = "States.IntrinsicFailure";
inline constexpr char kTimeout[] = "States.Timeout";
inline constexpr char kHeartbeatTimeout[] = "States.HeartbeatTimeout";
inline constexpr char kDataLimitExceeded[] = "States.DataLimitExceeded";
inline constexpr char kTaskFailed[] = "States.TaskFailed";

inline Unexpected<Failure> Fail(std::string error, std::string cause) {
  return Unexpected(Failure{std::move(error), std::move(cause)});
}
inline Unexpected<Failure> RuntimeFailure(std::string cause) {
  return Fail(kRuntime, std::move(cause));
}

}  // namespace muster::states

// Returns the failure of `expression` to the caller, or declares or assigns its value.
#define STATES_ASSIGN(target, expression) \
  STATES_ASSIGN_INNER(MUSTER_CONCAT(states_result_, __LINE__), target, expression)
#define STATES_ASSIGN_INNER(result, target, expression)      \
  auto result = (expression);                                \
  if (!result) return Unexpected(std::move(result).error()); \
  target = *std::move(result)

#define STATES_TRY(expression)                          \
  do {                                                  \
    if (auto try_result = (expression); !try_result)    \
      return Unexpected(std::move(try_result).error()); \
  } while (false)
