#include "plan/run/side_records.h"

#include "core/json_fields.h"
#include "core/record_version.h"
#include "store/store.h"

namespace muster::plan {
namespace {

constexpr const char* kDrainKind = "plan.wish";
constexpr const char* kLiveKind = "plan.rows";
constexpr const char* kQueue = "default";
constexpr int64_t kVersion = 1;  // of both kinds

Status Put(store::Store& store, const char* kind, const std::string& key, const std::string& body,
           bool deferred = false) {
  return store::Update(
      store, kind, key,
      [&](std::optional<store::Record> found) -> Result<std::optional<store::Change>> {
        store::Record record =
            std::move(found).value_or(store::Record{.kind = kind, .queue = kQueue, .key = key});
        record.body = body;
        return store::Change::Put(std::move(record), store::Due::Never(), deferred);
      });
}

// The body of a record about this attempt of a run; null: there is none.
Result<Json> Read(store::Store& store, const char* kind, const RunState& run) {
  MUSTER_ASSIGN(const auto found, store.Get(kind, run.id));
  if (!found) return Json();
  Json body = Json::parse(found->body, nullptr, false);
  if (TextIn(body, "execution") != run.execution) return Json();
  MUSTER_TRY(CheckVersion(VersionOf(body), kVersion, "the record '" + run.id + "' of " + kind));
  return body;
}

}  // namespace

Status RequestDrain(store::Store& store, const RunState& run) {
  return Put(store, kDrainKind, run.id,
             ToJsonText({{"v", kVersion}, {"execution", run.execution}, {"cancel", "drain"}}));
}

Result<bool> DrainRequested(store::Store& store, const RunState& run) {
  MUSTER_ASSIGN(const Json request, Read(store, kDrainKind, run));
  return TextIn(request, "cancel") == "drain";
}

Status DropDrainRequest(store::Store& store, const std::string& id) {
  MUSTER_ASSIGN(const auto found, store.Get(kDrainKind, id));
  return found ? Put(store, kDrainKind, id, "{}") : Status();
}

Status PublishLive(store::Store& store, const RunState& run, const LiveRun& live) {
  Json body{{"v", kVersion},
            {"execution", run.execution},
            {"rows", Json(live.rows)},
            {"waits", Json(live.waits)}};
  if (live.since) body["since"] = live.since->time_since_epoch().count();
  return Put(store, kLiveKind, run.id, ToJsonText(body), true);
}

Result<LiveRun> ReadLive(store::Store& store, const RunState& run) {
  MUSTER_ASSIGN(const Json body, Read(store, kLiveKind, run));
  LiveRun live;
  if (body.is_null()) return live;
  for (const auto& [state, count] : MemberIn(body, "rows").items()) {
    if (count.is_number_integer()) live.rows[state] = count;
  }
  for (const auto& [state, what] : MemberIn(body, "waits").items()) {
    if (what.is_string()) live.waits[state] = what.get<std::string>();
  }
  if (const Json& since = MemberIn(body, "since"); since.is_number_integer())
    live.since = WallTime(milliseconds(since.get<int64_t>()));
  return live;
}

}  // namespace muster::plan
