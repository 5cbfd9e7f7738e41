#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"
#include "work/lease.h"

namespace muster {

struct WorkerOptions {
  std::string kind = "work";
  std::string queue = "default";
  std::string owner;  // tells people who holds an item; need not be unique
  LeaseTerms terms = {};
  milliseconds idle_wait{1'000};    // how long a worker without work waits before it looks again
  milliseconds retry_delay{1'000};  // before the second attempt; doubles with each further one
};

// Does the work of one item: from lease.state().progress on, with Checkpoint as it goes. Returns
// the final progress when all is done; kCancelled when it stopped in good order because `stop` was
// requested; the lease's own error when a checkpoint failed; anything else is a failed attempt.
using ItemHandler = std::function<Result<std::string>(Lease& lease, std::stop_token stop)>;

// What became of a claimed item.
enum class ItemOutcome {
  kCompleted,
  kReleased,
  kFailed,
  kQuarantined,
  kLost,  // the lease ended under the worker, or it could not learn what was stored
};

// Told about every item that a worker is done with, before it claims the next.
using ItemObserver = std::function<void(const Lease& lease, ItemOutcome outcome)>;

// Claims and handles one item after another until every item of the queue is done or quarantined,
// or until a stop is requested. A store that cannot be reached is tried again for as long; an error
// that no waiting mends ends the worker. Any number of workers may run, anywhere.
Status RunWorker(Store& store, Env& env, const WorkerOptions& options, const ItemHandler& handler,
                 const ItemObserver& observer, std::stop_token stop);

// Creates the items that are not there yet, open and due now, with `progress` null. Safe to repeat
// and to do from several places at once.
Status CreateItems(Store& store, const std::string& kind, const std::string& queue,
                   const std::vector<std::string>& keys);

// Whether no item of the queue is open any more, decided by reading every one by key.
Result<bool> AllSettled(Store& store, const std::string& kind, const std::string& queue);

}  // namespace muster
