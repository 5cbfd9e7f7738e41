#pragma once

#include <memory>
#include <string>

#include "muster/task.h"
#include "task/notify/outbox.h"

namespace muster::task {

// Tells people, for the resource `muster:notify`:
//   {"targets": ["file:notifications.jsonl", …],
//    "subject": "simpplr: Extraction of User failed",
//    "message": {"rank": 500, …},          any JSON
//    "dedupe": "m-1/500/User",             the same for the same news; by default the call's token
//    "topic": "arn:aws:sns:…",             for the target sns
//    "migration": "m-1"}                   whose news it is; by default the execution's
// Targets:
//   file:PATH          a line {"dedupe", "subject", "message"}; once for each key
//   https://…, http:…  the same by POST, with the key as the header Idempotency-Key; 2xx is taken
//   command:PROGRAM    run by the shell, for mail and whatever else: the message on its standard
//                      input, MUSTER_SUBJECT and MUSTER_DEDUPE in its environment; 0 is taken
//   sns, arn:aws:sns:… published to `topic`, or to the topic named, with the key as the message
//                      attribute `dedupe`
// Secrets by reference in all of them.
//
// A call waits for nobody: it puts the news into the outbox (outbox.h), one letter for each target,
// and answers {"queued": N}. Threads of its own deliver them, each within 20 seconds, again and
// again until they are taken: at least once, and the key tells a repetition apart. Its end waits up
// to ten seconds for what has not been tried; what is not delivered then is in the store for the
// next that calls DeliverFor.
//
// Failures: Notify.Unavailable and so on, by what the store says.
class Notifier : public states::TaskExecutor {
 public:
  // From now on delivers what the outbox has of a migration, whoever put it there.
  virtual Status DeliverFor(const std::string& migration) = 0;

  // Waits until everything of a migration is delivered or was tried in vain, but no longer than
  // `patience`, and says what there is then. The end does not wait for it any more.
  virtual Result<std::vector<Letter>> Settle(const std::string& migration,
                                             std::chrono::milliseconds patience) = 0;
};

// `aws` makes the calls to SNS; it and `env` must outlive it. The store is opened when it is
// needed.
std::unique_ptr<Notifier> MakeNotifyExecutor(states::TaskExecutor& aws, Env& env,
                                             std::string store_url);

}  // namespace muster::task
