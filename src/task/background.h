#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "muster/result.h"
#include "muster/states.h"

namespace muster::task {

using Work = std::function<Result<states::TaskOutcome>(const std::stop_token& stop)>;

// Runs `work` on a thread of its own and keeps the call alive until it returns. `work` is asked to
// stop, and must then return soon, when the result is no longer wanted or the call's time is up. A
// failure after that time is States.Timeout. Exceptions become kInternal.
Result<states::TaskOutcome> InBackground(const states::TaskCall& call, states::TaskContext& context,
                                         const Work& work);

// An executor whose calls begin and end in Start: nothing is left to poll or to cancel.
//
// The name of a failure shows its cause:
//   States.Runtime      the definition: its parameters are wrong
//   States.Timeout      the call took longer than TimeoutSeconds
//   FAMILY.Invalid, FAMILY.NotFound, FAMILY.Conflict, …   the data: a retry fails again
//   FAMILY.Unavailable, FAMILY.UnknownOutcome, …          another system: a retry may succeed
//   FAMILY.Full, FAMILY.Internal, …                       this process or its machine
class BlockingExecutor : public states::TaskExecutor {
 public:
  // `family` begins the names of failures: "Copy".
  explicit BlockingExecutor(std::string_view family) : family_(family) {}

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) final;
  states::TaskOutcome Poll(const states::TaskCall& call, const Json& /*resume*/,
                           states::TaskContext& context) final {
    return Start(call, context);
  }
  void Cancel(const states::TaskCall& /*call*/, const Json& /*resume*/,
              states::TaskContext& /*context*/) final {}

 protected:
  // Reads the parameters; the work runs in the background. `call` and `context` outlive it. An
  // error is the definition's fault.
  virtual Result<Work> Prepare(const states::TaskCall& call, states::TaskContext& context) = 0;

  // Names a failure of the work, by default by its code.
  virtual states::TaskFailure FailureOf(const states::TaskCall& call, const Error& error) const;

 private:
  const std::string family_;
};

}  // namespace muster::task
