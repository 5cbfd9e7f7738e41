#include "store/metered_store.h"

#include <algorithm>

namespace muster::store {
namespace {

Metrics::Histogram SecondsOf(Metrics& metrics, const char* operation) {
  return metrics.GetHistogram("muster_store_seconds", "How long calls of the store take",
                              {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5},
                              {{"operation", operation}});
}

}  // namespace

MeteredStore::MeteredStore(Store& store, Metrics& metrics, Env& env)
    : StoreWrapper(store),
      metrics_(metrics),
      env_(env),
      get_(SecondsOf(metrics, "get")),
      scan_(SecondsOf(metrics, "scan")),
      write_(SecondsOf(metrics, "write")),
      claim_(SecondsOf(metrics, "claim")),
      now_(SecondsOf(metrics, "now")),
      conflicts_(metrics.GetCounter("muster_store_conflicts_total",
                                    "Changes that lost to a concurrent one")),
      claimed_(metrics.GetCounter("muster_store_claimed_total", "Records that were claimed")) {}

template <class Call>
auto MeteredStore::Timed(const char* operation, const Metrics::Histogram& seconds, Call call) {
  const MonoTime start = env_.MonoNow();
  auto result = call();
  seconds.Observe(std::chrono::duration<double>(env_.MonoNow() - start).count());
  if (!result) {
    metrics_
        .GetCounter(
            "muster_store_errors_total", "Calls of the store that failed",
            {{"operation", operation}, {"code", std::string(CodeName(result.error().code))}})
        .Add();
  }
  return result;
}

Result<std::optional<Record>> MeteredStore::Get(std::string_view kind, std::string_view key) {
  return Timed("get", get_, [&] { return inner().Get(kind, key); });
}

Result<std::vector<Record>> MeteredStore::Scan(std::string_view kind, std::string_view prefix,
                                               std::string_view after, int limit) {
  return Timed("scan", scan_, [&] { return inner().Scan(kind, prefix, after, limit); });
}

Result<std::vector<Written>> MeteredStore::Write(std::span<const Change> changes) {
  auto written = Timed("write", write_, [&] { return inner().Write(changes); });
  if (written) {
    conflicts_.Add(static_cast<double>(std::count_if(
        written->begin(), written->end(), [](const Written& one) { return !one.applied; })));
  }
  return written;
}

Result<std::vector<Record>> MeteredStore::Claim(const ClaimRequest& request) {
  auto claimed = Timed("claim", claim_, [&] { return inner().Claim(request); });
  if (claimed) claimed_.Add(static_cast<double>(claimed->size()));
  return claimed;
}

Result<WallTime> MeteredStore::Now() {
  return Timed("now", now_, [&] { return inner().Now(); });
}

}  // namespace muster::store
