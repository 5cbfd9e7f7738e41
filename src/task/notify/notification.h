#pragma once

#include <stop_token>
#include <string>

#include "core/json.h"
#include "muster/result.h"
#include "muster/states.h"

namespace muster::task {

// A notification for one target.
struct Notification {
  std::string target;
  std::string subject;
  Json message;
  std::string dedupe;
  std::string topic;  // for the target sns
  // The number of secret references that the definition has in `target`: more came with data.
  size_t references = 0;

  // {"dedupe": …, "subject": …, "message": …}, as sent to targets.
  std::string Line() const;
};

// kInvalid: an unknown kind of target.
Status CheckTarget(const std::string& target);

// Delivers it within 20 seconds. `aws` makes the calls to SNS.
Status Deliver(const Notification& news, states::TaskExecutor& aws, Env& env,
               const std::stop_token& stop);

}  // namespace muster::task
