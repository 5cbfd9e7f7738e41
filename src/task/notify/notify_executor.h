#pragma once

#include <memory>
#include <string>

#include "muster/states.h"
#include "task/notify/outbox.h"
#include "task/store_handle.h"

namespace muster::task {

// Sends notifications, for the resource `muster:notify`:
//   {"targets": ["file:notifications.jsonl", …],
//    "subject": "simpplr: Extraction of User failed",
//    "message": {"rank": 500, …},          any JSON
//    "dedupe": "m-1/500/User",             identifies repeats; by default the call's token
//    "topic": "arn:aws:sns:…",             for the target sns
//    "migration": "m-1"}                   it belongs to; by default the execution
// Targets:
//   file:PATH          a line {"dedupe", "subject", "message"}; once per key
//   https://…, http:…  the same by POST, with the key as the header Idempotency-Key; 2xx: delivered
//   command:PROGRAM    run by the shell, e.g. to send mail: the message on its standard input,
//                      MUSTER_SUBJECT and MUSTER_DEDUPE in its environment; exit code 0: delivered
//   sns, arn:aws:sns:… published to `topic`, or to the topic named, with the key as the message
//                      attribute `dedupe`
// All may hold secret references.
//
// A call does not wait for delivery: it queues one letter per target in the outbox (outbox.h) and
// returns {"queued": N}. Background threads deliver each at least once, retrying until it succeeds;
// receivers recognise repeats by the key. The destructor waits up to ten seconds for letters that
// were not tried yet; the rest stays in the store for the next caller of DeliverFor.
//
// Failures: Notify.Unavailable and so on, by the store's error.
class Notifier : public states::TaskExecutor {
 public:
  // From now on delivers all letters of a migration in the outbox, also those of other processes.
  virtual Status DeliverFor(const std::string& migration) = 0;

  // Waits up to `patience` until every letter of a migration is delivered or was tried, and returns
  // them all. The destructor does not wait for this migration any more.
  virtual Result<std::vector<Letter>> Settle(const std::string& migration,
                                             std::chrono::milliseconds patience) = 0;
};

// `aws` makes the calls to SNS; it and `env` must outlive the notifier. While a run is driven,
// BeginRun to EndRun, all of its letters are delivered.
std::unique_ptr<Notifier> MakeNotifyExecutor(states::TaskExecutor& aws, Env& env,
                                             StoreHandle store);

}  // namespace muster::task
