#include "plan/run/side_records.h"

#include "core/record_fields.h"
#include "muster/store.h"

namespace muster::plan {
namespace {

constexpr const char* kDrainKind = "plan.wish";
constexpr const char* kLiveKind = "plan.rows";
constexpr const char* kQueue = "default";
constexpr const char* kDrain = "drain";
constexpr const char* kExecution = "execution";

// Each belongs to one attempt; a dropped request belongs to none.
struct DrainBody {
  std::string execution = {};
  std::string cancel = {};  // how: kDrain
};
constexpr RecordTable<DrainBody, 2> kDrainTable{
    RecordFormat{kDrainKind, 1},
    {{Field<DrainBody, &DrainBody::execution>(kExecution),
      Field<DrainBody, &DrainBody::cancel>("cancel")}}};

struct LiveBody {
  std::string execution = {};
  std::map<std::string, int64_t> rows = {};
  std::map<std::string, std::string> waits = {};
  std::optional<int64_t> since_ms = {};
};
constexpr RecordTable<LiveBody, 4> kLiveTable{
    RecordFormat{kLiveKind, 1},
    {{Field<LiveBody, &LiveBody::execution>(kExecution), Field<LiveBody, &LiveBody::rows>("rows"),
      Field<LiveBody, &LiveBody::waits>("waits"), Field<LiveBody, &LiveBody::since_ms>("since")}}};

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

// The body of a record that belongs to this attempt of a run; none: no such record.
template <class Body, size_t N>
Result<std::optional<Body>> Read(store::Store& store, const RecordTable<Body, N>& table,
                                 const RunState& run) {
  const std::string kind(table.format.name);
  MUSTER_ASSIGN(const auto found, store.Get(kind, run.id));
  if (!found) return std::optional<Body>();
  const Json json = Json::parse(found->body, nullptr, false);
  if (TextIn(json, kExecution) != run.execution) return std::optional<Body>();
  MUSTER_ASSIGN(Body body, table.Read(json, "the record '" + run.id + "' of " + kind));
  return std::optional<Body>(std::move(body));
}

}  // namespace

Status RequestDrain(store::Store& store, const RunState& run) {
  const DrainBody body{.execution = run.execution, .cancel = kDrain};
  return Put(store, kDrainKind, run.id, ToJsonText(kDrainTable.ToJson(body)));
}

Result<bool> DrainRequested(store::Store& store, const RunState& run) {
  MUSTER_ASSIGN(const auto request, Read(store, kDrainTable, run));
  return request && request->cancel == kDrain;
}

Status DropDrainRequest(store::Store& store, const std::string& id) {
  MUSTER_ASSIGN(const auto found, store.Get(kDrainKind, id));
  return found ? Put(store, kDrainKind, id, ToJsonText(kDrainTable.ToJson({}))) : Status();
}

Status PublishLive(store::Store& store, const RunState& run, const LiveRun& live) {
  LiveBody body{.execution = run.execution, .rows = live.rows, .waits = live.waits};
  if (live.since) body.since_ms = live.since->time_since_epoch().count();
  return Put(store, kLiveKind, run.id, ToJsonText(kLiveTable.ToJson(body)), true);
}

Result<LiveRun> ReadLive(store::Store& store, const RunState& run) {
  const auto body = Read(store, kLiveTable, run);
  // Nothing depends on it: a damaged one counts as missing.
  if (!body && body.error().code == Code::kCorrupt) return LiveRun();
  if (!body) return body.error();
  if (!*body) return LiveRun();
  LiveRun live{.rows = (*body)->rows, .waits = (*body)->waits};
  if ((*body)->since_ms) live.since = WallTime(milliseconds(*(*body)->since_ms));
  return live;
}

}  // namespace muster::plan
