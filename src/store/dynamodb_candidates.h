#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"

namespace muster {

// What the index of due times proposes to the claims of this process. The index may be behind, and
// others claim as well, so a candidate is a guess that a conditional write has to confirm.
//
// One answer of the index serves many claims, since what becomes due later is younger than all
// that it named. Threads never get the same candidate. As long as nobody else claims, the oldest
// comes first; when others turn out to be at the same ones, more are asked for and handed out at
// random.
//
// Thread-safe. `env` must outlive it.
class DynamoDbCandidates {
 public:
  struct Candidate {
    std::string key;
    int64_t version = 0;  // as the index knows it
    int attempt = 0;
  };

  // Up to so many of each partition of the index, the oldest first.
  using Ask = std::function<Result<std::vector<Candidate>>(int limit)>;

  explicit DynamoDbCandidates(Env& env) : env_(env) {}

  // The next to try of a queue; nothing: none is due. May call `ask`, while the other claims of
  // that queue wait.
  Result<std::optional<Candidate>> Next(const std::string& kind, const std::string& queue,
                                        const Ask& ask);

  // What became of it. A candidate that is settled, by us or by others, is not proposed again when
  // the index is behind. One that is not reported may be.
  void Settled(const std::string& kind, const std::string& queue, const Candidate& candidate,
               bool by_us);

 private:
  struct Queue {
    std::mutex mutex;
    std::deque<Candidate> list;
    MonoTime began{};  // to ask, the last time
    MonoTime asked{};  // when the answer came
    bool found_none = false;
    int limit = 0;  // of the last question
    int won = 0;    // since then
    int lost = 0;
    bool contended = false;
    std::map<std::pair<std::string, int64_t>, MonoTime> settled;
  };

  std::shared_ptr<Queue> Find(const std::string& kind, const std::string& queue);
  Status Refill(Queue& queue, const Ask& ask);

  Env& env_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Queue>> queues_;
};

}  // namespace muster
