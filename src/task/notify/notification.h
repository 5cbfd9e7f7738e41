#pragma once

#include <stop_token>
#include <string>

#include "core/json.h"
#include "muster/result.h"
#include "muster/task.h"

namespace muster::task {

// News for one target.
struct Notification {
  std::string target;
  std::string subject;
  Json message;
  std::string dedupe;
  std::string topic;  // for the target sns
  // How many references to secrets the definition has written into the target: all that it may
  // have.
  size_t references = 0;

  // {"dedupe": …, "subject": …, "message": …}, as targets get it.
  std::string Line() const;
};

// kInvalid: there is no such target.
Status CheckTarget(const std::string& target);

// Delivers it, within 20 seconds, or says why that was not possible. `aws` makes the calls to SNS.
Status Deliver(const Notification& news, states::TaskExecutor& aws, Env& env,
               const std::stop_token& stop);

}  // namespace muster::task
