#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/mutex.h"
#include "muster/store.h"
#include "store/dynamodb/dynamodb_candidates.h"
#include "store/dynamodb/dynamodb_client.h"
#include "store/dynamodb/dynamodb_items.h"

namespace muster::store {

// Store::Claim on a table: candidates from the index of due times, each taken by a conditional
// UpdateItem. Thread-safe. The arguments of the constructor must outlive it.
class DynamoDbClaims {
 public:
  DynamoDbClaims(DynamoDbClient& client, const DynamoDbItems& items, Env& env)
      : client_(client), items_(items), env_(env), candidates_(env) {}

  Result<std::vector<Record>> Claim(const ClaimRequest& request);

 private:
  using Candidate = DynamoDbCandidates::Candidate;

  // Keys that claims may have taken without knowing, because the response was lost. In memory,
  // since only the process that made a claim repeats it.
  class Unconfirmed {
   public:
    void Remember(const std::string& claim_id, const std::vector<std::string>& keys);
    std::set<std::string> Recall(const std::string& claim_id) const;

   private:
    static constexpr size_t kMaxClaims = 1'000;
    mutable Mutex mutex_;
    std::map<std::string, std::set<std::string>> keys_ GUARDED_BY(mutex_);
    std::deque<std::string> order_ GUARDED_BY(mutex_);
  };

  Result<std::vector<Record>> ClaimDue(const ClaimRequest& request);
  Result<std::vector<Record>> ClaimKey(const ClaimRequest& request);
  // None: no longer available.
  Result<std::optional<Record>> Take(const ClaimRequest& request, const std::string& key,
                                     int64_t attempt);
  Json IndexQuery(const ClaimRequest& request, int shard) const;
  Result<std::vector<Candidate>> AskIndex(const ClaimRequest& request, int limit);
  Result<std::vector<Record>> TakenBefore(const ClaimRequest& request);
  Status FindClaimed(const ClaimRequest& request, std::set<std::string>& keys);

  DynamoDbClient& client_;
  const DynamoDbItems& items_;
  Env& env_;
  DynamoDbCandidates candidates_;
  Unconfirmed unconfirmed_;
};

}  // namespace muster::store
