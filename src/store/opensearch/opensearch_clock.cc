#include "store/opensearch/opensearch_clock.h"

namespace muster::store {
namespace {

// The smallest of the statistics; each carries its time. OpenSearch still supports the manager's
// older name.
constexpr const char* kQuestion =
    "/_nodes/_master/stats/process?filter_path=nodes.*.timestamp&timeout=2s";

int64_t TimestampOf(const net::OpenSearchAnswer& response) {
  const auto body = ParseJson(response.body, "answer");
  if (!body) return 0;
  const Json& nodes = MemberIn(*body, "nodes");
  return nodes.is_object() && !nodes.empty() ? NumberIn(nodes.front(), "timestamp") : 0;
}

}  // namespace

Status OpenSearchClock::Measure() {
  const MonoTime asked = env_.MonoNow();
  MUSTER_ASSIGN(const net::OpenSearchAnswer response, client_.SendOnce({.target = kQuestion}));
  const MonoTime answered = env_.MonoNow();
  if (const int64_t timestamp = response.status == 200 ? TimestampOf(response) : 0) {
    clock_.Observe(asked, answered, WallTime(std::chrono::milliseconds(timestamp)),
                   std::chrono::milliseconds(1));
    return {};
  }
  if (response.date) {
    clock_.Observe(asked, answered, *response.date, std::chrono::seconds(1));
    return {};
  }
  if (response.status >= 500 || response.status == 429) {
    return Error{Code::kUnavailable,
                 "the cluster does not report its time: status " + std::to_string(response.status),
                 "wait until GET _cluster/health shows a cluster manager"};
  }
  return Error{Code::kPermission, "the cluster does not report its time",
               "allow cluster:monitor/nodes/stats: leases go by the cluster manager's clock"};
}

Result<ServerClock::Reading> OpenSearchClock::Read() {
  Status measured;
  if (clock_.IsStale(env_.MonoNow())) measured = Measure();
  auto reading = clock_.Read(env_.MonoNow());
  // While the cluster does not respond, the last reading is used as long as it is accurate enough.
  if (!reading && !measured) return measured.error();
  return reading;
}

}  // namespace muster::store
