#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster::store {

// Candidates for this process's claims, from the index of due times. The index may lag, and others
// claim too, so a candidate is a guess that a conditional write has to confirm.
//
// One index query serves many claims, since records that become due later are younger than all it
// returned. Threads never get the same candidate. Without contention the oldest comes first; when
// others compete for the same ones, more are requested and handed out at random.
//
// Thread-safe. `env` must outlive it.
class DynamoDbCandidates {
 public:
  struct Candidate {
    std::string key;
    int64_t version = 0;  // as known to the index
    int attempt = 0;
  };

  // Up to `limit` from each partition of the index, oldest first.
  using Ask = std::function<Result<std::vector<Candidate>>(int limit)>;

  explicit DynamoDbCandidates(Env& env) : env_(env) {}

  // The next candidate of a queue; none: nothing is due. May call `ask` while other claims of that
  // queue wait.
  Result<std::optional<Candidate>> Next(const std::string& kind, const std::string& queue,
                                        const Ask& ask);

  // The outcome. A settled candidate, by us or by others, is not proposed again while the index
  // lags. One that is not reported may be.
  void Settled(const std::string& kind, const std::string& queue, const Candidate& candidate,
               bool by_us);

 private:
  struct Queue {
    Mutex mutex;
    std::deque<Candidate> list GUARDED_BY(mutex);
    MonoTime began GUARDED_BY(mutex){};  // start of the last query
    MonoTime asked GUARDED_BY(mutex){};  // end of the last query
    bool found_none GUARDED_BY(mutex) = false;
    int limit GUARDED_BY(mutex) = 0;  // of the last query
    int won GUARDED_BY(mutex) = 0;    // since then
    int lost GUARDED_BY(mutex) = 0;
    bool contended GUARDED_BY(mutex) = false;
    std::map<std::pair<std::string, int64_t>, MonoTime> settled GUARDED_BY(mutex);
  };

  std::shared_ptr<Queue> Find(const std::string& kind, const std::string& queue);
  Status Refill(Queue& queue, const Ask& ask) REQUIRES(queue.mutex);

  Env& env_;
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Queue>> queues_ GUARDED_BY(mutex_);
};

}  // namespace muster::store
