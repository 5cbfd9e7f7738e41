#pragma once

#include <memory>

#include "muster/task.h"

namespace muster::task {

// Tells people, for the resource `muster:notify`:
//   {"targets": ["file:notifications.jsonl", …],
//    "subject": "simpplr: Extraction of User failed",
//    "message": {"rank": 500, …},          any JSON
//    "dedupe": "m-1/500/User",             the same for the same news; by default the call's token
//    "topic": "arn:aws:sns:…"}             for the target sns
// Targets:
//   file:PATH          a line {"dedupe", "subject", "message"}; once for each key
//   https://…, http:…  the same by POST, with the key as the header Idempotency-Key; 2xx is taken
//   command:PROGRAM    run by the shell, for mail and whatever else: the message on its standard
//                      input, MUSTER_SUBJECT and MUSTER_DEDUPE in its environment; 0 is taken
//   sns, arn:aws:sns:… published to `topic`, or to the topic named
// Secrets by reference in all of them.
//
// All targets are tried, each for at most 20 seconds. The result is {"delivered": N}. If one has
// not taken it, the call fails with Notify.Failed and what each said, so that Retry tells it again:
// at least once, and the key tells a repetition apart. `aws` makes the calls to SNS, and must
// outlive it.
std::unique_ptr<TaskExecutor> MakeNotifyExecutor(TaskExecutor& aws);

}  // namespace muster::task
