#include "store/doctor/diagnose.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "muster/store.h"
#include "store/doctor/diagnose_backends.h"

namespace muster::store {
namespace {

constexpr std::string_view kProbeKind = "doctor";

std::string Milliseconds(std::chrono::nanoseconds duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f ms",
                std::chrono::duration<double, std::milli>(duration).count());
  return text;
}

// Reads a few times; the median is what a command will see. Does not read the clock: some stores
// know it without a request.
Status DiagnoseLatency(Store& store, Env& env, Findings& findings) {
  std::array<std::chrono::nanoseconds, 5> trips;
  for (auto& trip : trips) {
    const MonoTime start = env.MonoNow();
    MUSTER_TRY(store.Get(kProbeKind, "latency"));
    trip = env.MonoNow() - start;
  }
  const WallTime asked = env.WallNow();
  MUSTER_ASSIGN(const WallTime now, store.Now());
  DiagnoseClock(asked, now, env.WallNow(), findings);
  std::sort(trips.begin(), trips.end());
  const auto median = trips[trips.size() / 2];
  if (median > std::chrono::milliseconds(100)) {
    findings.Warn("latency", "a round trip takes " + Milliseconds(median),
                  "run muster closer to its store, or claim in larger batches");
  } else {
    findings.Ok("latency", "a round trip takes " + Milliseconds(median));
  }
  return {};
}

Status ProbeWrite(Store& store, Env& env) {
  Record probe;
  probe.kind = kProbeKind;
  probe.queue = kProbeKind;
  probe.key = env.NewId();
  const Change create = Change::Put(probe, Due::Never());
  MUSTER_TRY(store.Write({&create, 1}));
  // Read back rather than trusted: that is the promise being checked.
  MUSTER_ASSIGN(const std::optional<Record> stored, store.Get(kProbeKind, probe.key));
  if (!stored) {
    return Error{Code::kCorrupt, "a record that was just written cannot be read",
                 "check the server's replication and the disk"};
  }
  const Change remove = Change::Delete(*stored);
  MUSTER_TRY(store.Write({&remove, 1}));
  return {};
}

void DiagnoseUse(const std::string& url, Env& env, Findings& findings) {
  auto store = OpenStore(url, env);
  if (!store) return findings.Fail("open", store.error());
  if (auto latency = DiagnoseLatency(**store, env, findings); !latency) {
    return findings.Fail("latency", latency.error());
  }
  if (auto written = ProbeWrite(**store, env); !written) {
    return findings.Fail("write", written.error());
  }
  findings.Ok("write", "a record was written, read and deleted");
  if (auto waits = DiagnoseWaits(**store, findings); !waits) findings.Fail("waits", waits.error());
}

}  // namespace

void DiagnoseClock(WallTime asked, WallTime store, WallTime answered, Findings& findings) {
  using std::chrono::milliseconds;
  const milliseconds ahead = std::max(store - answered, milliseconds(0));
  const milliseconds behind = std::max(asked - store, milliseconds(0));
  const milliseconds skew = std::max(ahead, behind);
  if (skew <= std::chrono::seconds(1)) {
    return findings.Ok("clock", "the store's clock agrees with this machine's");
  }
  findings.Warn("clock",
                "the store's clock is " + std::to_string(skew.count()) + " ms " +
                    (ahead > behind ? "ahead of" : "behind") + " this machine's",
                "leases are safe, they go by the store's clock; set both clocks by NTP so that "
                "logs can be compared");
}

Result<std::vector<Finding>> DiagnoseStore(const std::string& text, Env& env) {
  MUSTER_ASSIGN(const StoreUrl url, ParseStoreUrl(text));
  Findings findings;
  bool exists = true;
  switch (url.backend) {
    case StoreUrl::Backend::kMemory:
      findings.Warn("durability", "a memory store ends with its process",
                    "use sqlite:PATH to keep the state and to share it among processes");
      break;
    case StoreUrl::Backend::kSqlite:
      exists = DiagnoseSqlite(url, findings);
      break;
    case StoreUrl::Backend::kPostgres:
      exists = DiagnosePostgres(url, env, findings);
      break;
    case StoreUrl::Backend::kOpenSearch:
      exists = DiagnoseOpenSearch(url, env, findings);
      break;
    case StoreUrl::Backend::kDynamoDb:
      exists = DiagnoseDynamoDb(url, env, findings);
      break;
  }
  if (exists && !findings.failed()) DiagnoseUse(text, env, findings);
  return findings.Take();
}

}  // namespace muster::store
