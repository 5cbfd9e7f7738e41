#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "muster/store.h"
#include "store/doctor/diagnose_backends.h"
#include "store/record_scan.h"

namespace muster::store {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr size_t kMostLookedAt = 10'000;  // of each kind

// Leases are shorter, unless the user asked for long ones, and so are pauses.
constexpr minutes kLongestWait{30};

// What has a due time, by kind, as docs/internals/formats.md lists them.
struct WaitingKind {
  std::string_view kind;
  std::string_view name;
  minutes longest = kLongestWait;
  bool only_held = false;  // without an owner it may wait for as long as the user likes
};
constexpr WaitingKind kKinds[] = {
    {"work", "work item"},
    {"prepare", "preparation of run"},
    {"budget", "count of failures of run"},
    {"redrive_lease", "redrive"},
    {"states", "execution", kLongestWait, true},
    {"plan.run", "migration"},
    {"notification", "notification"},
    {"replica", "replica set's record", hours(25)},  // the dead are remembered for a day
};

// Records that wait for longer than they should.
struct Late {
  size_t count = 0;
  std::string first;
  WallTime until{};
  std::string not_all = {};  // kinds that have more records than were looked at
};

Status FindLate(Store& store, const WaitingKind& kind, WallTime now, Late& late) {
  RecordScan records(store, std::string(kind.kind), "");
  for (size_t looked_at = 0;; ++looked_at) {
    MUSTER_ASSIGN(const std::optional<Record> record, records.Next());
    if (!record) return {};
    if (looked_at == kMostLookedAt) {
      late.not_all += (late.not_all.empty() ? "" : ", ") + std::string(kind.kind);
      return {};
    }
    if (!record->due || *record->due <= now + kind.longest) continue;
    if (kind.only_held && record->owner.empty()) continue;
    if (late.count++ == 0) late.first = std::string(kind.name) + " '" + record->key + "'";
    late.until = std::max(late.until, *record->due);
  }
}

// What was not looked at, in words that follow the finding.
std::string NotAll(const Late& late) {
  if (late.not_all.empty()) return "";
  return "; looked at only the first " + std::to_string(kMostLookedAt) +
         " records of: " + late.not_all;
}

}  // namespace

Status DiagnoseWaits(Store& store, Findings& findings) {
  MUSTER_ASSIGN(const WallTime now, store.Now());
  Late late;
  for (const WaitingKind& kind : kKinds) MUSTER_TRY(FindLate(store, kind, now, late));
  if (late.count == 0) {
    findings.Ok("waits", "nothing waits for longer than leases last" + NotAll(late));
    return {};
  }
  const auto left = std::chrono::duration_cast<minutes>(late.until - now).count();
  const std::string others =
      late.count == 1 ? "" : " and " + std::to_string(late.count - 1) + " more";
  findings.Warn(
      "waits",
      late.first + others + (late.count == 1 ? " waits" : " wait") + " for up to " +
          std::to_string(left) +
          " minutes: if no lease is meant to be that long, the store's clock was set back" +
          NotAll(late),
      "correct the clock; a work item can be released with 'muster work release ITEM'");
  return {};
}

}  // namespace muster::store
