#include "change/follow_checkpoint.h"

#include "core/record_fields.h"

namespace muster::change {
namespace {

using Phase = FollowCheckpoint::Phase;
constexpr EnumNames<Phase, 3> kPhases{
    {{{Phase::kCreating, "creating"}, {Phase::kFollowing, "following"}, {Phase::kEnded, "ended"}}}};

// A position in the source's log, as PostgreSQL writes it.
struct AsLsn {
  static Json Write(sql::PgLsn lsn) { return sql::PgLsnText(lsn); }
  static void Read(JsonFields& fields, std::string_view name, sql::PgLsn& lsn) {
    std::string text;
    fields.Read(name, text);
    const auto read = sql::ParsePgLsn(text);
    if (!read) return fields.Mistake("'" + std::string(name) + "' is not a position");
    lsn = *read;
  }
};

constexpr RecordTable<FollowCheckpoint, 8> kTable{
    RecordFormat{"follow_checkpoint", 1},
    {{
        Named<FollowCheckpoint, &FollowCheckpoint::phase, kPhases>("phase"),
        Always<FollowCheckpoint, &FollowCheckpoint::id>("id"),
        Always<FollowCheckpoint, &FollowCheckpoint::tables>("tables"),
        Always<FollowCheckpoint, [](auto& one) -> auto& { return one.system.id; }>("system"),
        Always<FollowCheckpoint, [](auto& one) -> auto& { return one.system.timeline; }>(
            "timeline"),
        Required<FollowCheckpoint, &FollowCheckpoint::end, AsLsn>("end"),
        Required<FollowCheckpoint, &FollowCheckpoint::commit, AsLsn>("commit"),
        Always<FollowCheckpoint, &FollowCheckpoint::changes>("changes"),
    }}};

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
  MUSTER_ASSIGN(FollowCheckpoint checkpoint,
                kTable.Parse(events.front().payload, "the checkpoint in stream '" + stream_ + "'"));
  return checkpoint;
}

Status FollowLog::Write(const FollowCheckpoint& checkpoint,
                        std::vector<events::StreamAppend> appends) {
  const std::string text = ToJsonText(kTable.ToJson(checkpoint));
  appends.push_back({.stream = stream_,
                     .expected = version_,
                     .events = {{.type = "follow.checkpoint", .payload = text}}});
  const auto appended = log_.Append(appends);
  if (!appended && appended.error().code == Code::kUnknownOutcome) {
    // If another process has appended an equal checkpoint, its changes are the same as ours.
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
