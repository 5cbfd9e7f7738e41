#include "change/follow_checkpoint.h"

#include "core/enum_names.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/record_version.h"

namespace muster::change {
namespace {

constexpr RecordFormat kFormat{"follow_checkpoint", 1};

using Phase = FollowCheckpoint::Phase;
constexpr EnumNames<Phase, 3> kPhases{
    {{{Phase::kCreating, "creating"}, {Phase::kFollowing, "following"}, {Phase::kEnded, "ended"}}}};

std::string ToText(const FollowCheckpoint& checkpoint) {
  return ToJsonText({{kVersionField, kFormat.version},
                     {"phase", kPhases.NameOf(checkpoint.phase)},
                     {"id", checkpoint.id},
                     {"tables", checkpoint.tables},
                     {"system", checkpoint.system.id},
                     {"timeline", checkpoint.system.timeline},
                     {"end", sql::PgLsnText(checkpoint.end)},
                     {"commit", sql::PgLsnText(checkpoint.commit)},
                     {"changes", checkpoint.changes}});
}

Result<FollowCheckpoint> FromText(const std::string& text, const std::string& stream) {
  MUSTER_ASSIGN(const Json json, ParseJson(text, stream));
  MUSTER_TRY(CheckVersion(VersionOf(json), kFormat, "the checkpoint in '" + stream + "'"));
  FollowCheckpoint checkpoint{.id = TextIn(json, "id"),
                              .system = {TextIn(json, "system"), NumberIn(json, "timeline")},
                              .changes = NumberIn(json, "changes")};
  const auto phase = kPhases.Find(TextIn(json, "phase"));
  const auto end = sql::ParsePgLsn(TextIn(json, "end"));
  const auto commit = sql::ParsePgLsn(TextIn(json, "commit"));
  if (!phase || !end || !commit) {
    return Error{Code::kCorrupt, "the checkpoint in stream '" + stream + "' is malformed"};
  }
  for (const auto& [name, oid] : MemberIn(json, "tables").items()) {
    checkpoint.tables[name] = oid.is_number_integer() ? oid.get<int64_t>() : 0;
  }
  checkpoint.phase = *phase;
  checkpoint.end = *end;
  checkpoint.commit = *commit;
  return checkpoint;
}

}  // namespace

Result<std::vector<events::Event>> FollowLog::After(int64_t version) {
  return log_.ReadStream(stream_, version, 1);
}

// No call returns the last event of a stream: doubles, then halves.
Result<int64_t> FollowLog::LastVersion() {
  int64_t step = 1;
  int64_t last = 0;
  while (true) {
    MUSTER_ASSIGN(const auto events, After(last + step - 1));
    if (events.empty()) break;
    last += step;
    step *= 2;
  }
  for (; step > 0; step /= 2) {
    MUSTER_ASSIGN(const auto events, After(last + step - 1));
    if (!events.empty()) last += step;
  }
  return last;
}

Result<std::optional<FollowCheckpoint>> FollowLog::Read() {
  MUSTER_ASSIGN(version_, LastVersion());
  if (version_ == 0) return std::optional<FollowCheckpoint>();
  MUSTER_ASSIGN(const auto events, After(version_ - 1));
  if (events.empty()) {
    return Error{Code::kCorrupt, "stream '" + stream_ + "' has lost its last event"};
  }
  version_ = events.front().version;
  MUSTER_ASSIGN(FollowCheckpoint checkpoint, FromText(events.front().payload, stream_));
  return checkpoint;
}

Status FollowLog::Write(const FollowCheckpoint& checkpoint,
                        std::vector<events::StreamAppend> appends) {
  const std::string text = ToText(checkpoint);
  appends.push_back({.stream = stream_,
                     .expected = version_,
                     .events = {{.type = "follow.checkpoint", .payload = text}}});
  const auto appended = log_.Append(appends);
  if (!appended && appended.error().code == Code::kUnknownOutcome) {
    // Changes that another process has appended with an equal checkpoint are the same.
    MUSTER_ASSIGN(const auto events, After(version_));
    if (events.empty()) return Error{Code::kUnavailable, appended.error().message};
    if (events.front().payload != text) return Error{Code::kConflict, appended.error().message};
  } else if (!appended) {
    return appended.error();
  }
  ++version_;
  return {};
}

}  // namespace muster::change
