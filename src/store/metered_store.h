#pragma once

#include "core/metrics.h"
#include "store/store_wrapper.h"

namespace muster::store {

// Counts and times a store's calls: muster_store_seconds by operation, muster_store_errors_total by
// operation and code, muster_store_conflicts_total and muster_store_claimed_total. Arguments must
// outlive it.
class MeteredStore final : public StoreWrapper {
 public:
  MeteredStore(Store& store, Metrics& metrics, Env& env);

  Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) override;
  Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                   std::string_view after, int limit) override;
  Result<std::vector<Written>> Write(std::span<const Change> changes) override;
  Result<std::vector<Record>> Claim(const ClaimRequest& request) override;
  Result<WallTime> Now() override;

 private:
  template <class Call>
  auto Timed(const char* operation, const Metrics::Histogram& seconds, Call call);

  Metrics& metrics_;
  Env& env_;
  const Metrics::Histogram get_;
  const Metrics::Histogram scan_;
  const Metrics::Histogram write_;
  const Metrics::Histogram claim_;
  const Metrics::Histogram now_;
  const Metrics::Counter conflicts_;
  const Metrics::Counter claimed_;
};

}  // namespace muster::store
