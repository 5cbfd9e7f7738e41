#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "muster/store.h"
#include "store/opensearch/opensearch_bulk.h"
#include "store/opensearch/opensearch_candidates.h"
#include "store/opensearch/opensearch_clock.h"
#include "store/opensearch/opensearch_reader.h"

namespace muster::store {

// Store::Claim on an index: searches propose candidates, and conditional updates take them.
// Thread-safe. The references passed to the constructor must outlive it.
class OpenSearchClaims {
 public:
  OpenSearchClaims(OpenSearchCluster& client, OpenSearchReader& reader, OpenSearchClock& clock,
                   std::string alias, Env& env)
      : client_(client), reader_(reader), clock_(clock), alias_(std::move(alias)), env_(env) {}

  Result<std::vector<Record>> Claim(const ClaimRequest& request);

 private:
  Result<std::vector<Candidate>> FindDue(const ClaimRequest& request, size_t size);
  // Claims each candidate that is unchanged. Results are in their order.
  std::vector<BulkResult> TryClaim(const ClaimRequest& request,
                                   const std::vector<Candidate>& candidates);
  Result<std::vector<Record>> ClaimKey(const ClaimRequest& request);
  Result<std::vector<Record>> TakenBy(const ClaimRequest& request);
  std::shared_ptr<Candidates> CandidatesOf(const ClaimRequest& request);

  OpenSearchCluster& client_;
  OpenSearchReader& reader_;
  OpenSearchClock& clock_;
  const std::string alias_;
  Env& env_;

  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Candidates>> queues_
      GUARDED_BY(mutex_);
};

}  // namespace muster::store
