#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"
#include "store/opensearch/opensearch_records.h"

namespace muster::store {

// A record that a search proposed for claiming. It may have been taken since.
struct Candidate {
  std::string id;
  DocumentVersion version;
  int64_t epoch = 0;
  int attempt = 0;
};

// The candidates of one queue, shared by the threads of a process so that they don't collide: one
// search serves many claims, and no candidate is handed out twice. To avoid collisions between
// processes too, the order is random within the older half, then within the younger; and across all
// of them for a while after a collision. Thread-safe.
class Candidates {
 public:
  // Up to `size` records that are due now, oldest first, as of the call or later.
  using Search = std::function<Result<std::vector<Candidate>>(size_t size)>;

  explicit Candidates(Env& env);

  // Up to `count` candidates. Searches if there are fewer, unless that was done since `arrived`:
  // none means that nothing was due then. Threads wait for each other's search.
  Result<std::vector<Candidate>> Take(size_t count, MonoTime arrived, const Search& search);

  // A candidate was not, or may not have been, claimed: it becomes one again once a search finds
  // it.
  void GiveBack(const Candidate& candidate);

  // A candidate was taken by another process: the others may have been too.
  void Collided();

 private:
  std::vector<Candidate> TakeKnown(size_t count) REQUIRES(mutex_);
  void Refill(std::vector<Candidate> found) REQUIRES(mutex_);

  Env& env_;
  Mutex searching_;  // one search at a time
  MonoTime searched_ GUARDED_BY(searching_){MonoTime::min()};

  Mutex mutex_;
  std::vector<Candidate> known_ GUARDED_BY(mutex_);  // the next one last
  size_t page_ GUARDED_BY(mutex_);                   // how many to search for
  // Versions being claimed or known to be outdated. A search may still show them.
  std::map<std::string, DocumentVersion> spent_ GUARDED_BY(mutex_);
  MonoTime spread_until_ GUARDED_BY(mutex_){MonoTime::min()};
};

}  // namespace muster::store
