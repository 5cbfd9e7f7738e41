#include "replica/sqlite_parked.h"

#include <algorithm>

namespace muster::replica {
namespace {

Error NotParked(const ParkedEvent& event) {
  return {Code::kLeaseLost, "stream '" + event.stream + "' is not parked as it was"};
}

}  // namespace

Status CommitParked(SqliteModelConnection& connection, const Instance& instance,
                    const ReadModelProgress& progress) {
  for (const ParkedEvent& event : progress.parked) {
    // Without a reason the stream must already exist, which updating zero rows reveals.
    MUSTER_ASSIGN(
        auto stream,
        connection.Own(progress.error.empty()
                           ? "UPDATE $_parked_streams SET slot = ?5 WHERE replica_set = ?1 AND"
                             " projection = ?2 AND version = ?3 AND stream = ?4"
                           : "INSERT INTO $_parked_streams (replica_set, projection, version,"
                             " stream, slot, error) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
                             " ON CONFLICT DO UPDATE SET error = ?6, replay = 0"));
    stream->Bind(instance.set, instance.projection, instance.version, event.stream, event.slot);
    if (!progress.error.empty()) stream->BindAt(6, progress.error);
    MUSTER_TRY(stream->Run());
    if (connection.db().Changes() != 1) return NotParked(event);
    MUSTER_ASSIGN(auto parked,
                  connection.Own("INSERT INTO $_parked_events VALUES (?, ?, ?, ?, ?, ?)"
                                 " ON CONFLICT DO NOTHING"));
    MUSTER_TRY(parked
                   ->Bind(instance.set, instance.projection, instance.version, event.stream,
                          event.version, event.side_effects ? 1 : 0)
                   .Run());
  }
  return {};
}

Status CommitFailed(SqliteModelConnection& connection, const Instance& instance,
                    const ReadModelProgress& progress) {
  for (const ParkedEvent& event : progress.failed) {
    MUSTER_ASSIGN(
        auto stream,
        connection.Own("UPDATE $_parked_streams SET error = ?6, replay = 0 WHERE"
                       " replica_set = ?1 AND projection = ?2 AND version = ?3 AND stream = ?4"
                       " AND EXISTS (SELECT 1 FROM $_parked_events WHERE replica_set = ?1 AND"
                       " projection = ?2 AND version = ?3 AND stream = ?4"
                       " AND event_version = ?5)"));
    MUSTER_TRY(stream
                   ->Bind(instance.set, instance.projection, instance.version, event.stream,
                          event.version, progress.error)
                   .Run());
    if (connection.db().Changes() != 1) return NotParked(event);
  }
  return {};
}

Status CommitReplayed(SqliteModelConnection& connection, const Instance& instance,
                      const ReadModelProgress& progress) {
  for (const ParkedEvent& event : progress.replayed) {
    MUSTER_ASSIGN(
        auto parked,
        connection.Own("DELETE FROM $_parked_events WHERE replica_set = ? AND projection = ?"
                       " AND version = ? AND stream = ? AND event_version = ?"));
    MUSTER_TRY(
        parked
            ->Bind(instance.set, instance.projection, instance.version, event.stream, event.version)
            .Run());
    if (connection.db().Changes() != 1) return NotParked(event);
    MUSTER_ASSIGN(
        auto stream,
        connection.Own("DELETE FROM $_parked_streams AS s WHERE replica_set = ? AND"
                       " projection = ? AND version = ? AND stream = ? AND NOT EXISTS (SELECT 1"
                       " FROM $_parked_events e WHERE e.replica_set = s.replica_set AND"
                       " e.projection = s.projection AND e.version = s.version AND"
                       " e.stream = s.stream)"));
    MUSTER_TRY(
        stream->Bind(instance.set, instance.projection, instance.version, event.stream).Run());
  }
  return {};
}

Status ForgetSkipped(SqliteModelConnection& connection, const Instance& instance,
                     const ParkedEvent& event) {
  MUSTER_ASSIGN(
      auto stream,
      connection.Own("UPDATE $_parked_streams SET error = ?6 WHERE replica_set = ?1 AND"
                     " projection = ?2 AND version = ?3 AND stream = ?4 AND NOT EXISTS (SELECT 1"
                     " FROM $_parked_events WHERE replica_set = ?1 AND projection = ?2 AND"
                     " version = ?3 AND stream = ?4 AND event_version < ?5)"));
  return stream
      ->Bind(instance.set, instance.projection, instance.version, event.stream, event.version,
             SkippedError(event.version))
      .Run();
}

Status Unpark(SqliteModelConnection& connection, const Instance& instance, int slot) {
  MUSTER_ASSIGN(
      auto events,
      connection.Own("DELETE FROM $_parked_events WHERE replica_set = ?1 AND projection = ?2"
                     " AND version = ?3 AND stream IN (SELECT stream FROM $_parked_streams"
                     " WHERE replica_set = ?1 AND projection = ?2 AND version = ?3"
                     " AND slot = ?4)"));
  MUSTER_TRY(events->Bind(instance.set, instance.projection, instance.version, slot).Run());
  MUSTER_ASSIGN(auto streams,
                connection.Own("DELETE FROM $_parked_streams WHERE replica_set = ?1 AND"
                               " projection = ?2 AND version = ?3 AND slot = ?4"));
  MUSTER_TRY(streams->Bind(instance.set, instance.projection, instance.version, slot).Run());
  return {};
}

Result<std::vector<ParkedStream>> ReadParked(SqliteModelConnection& connection,
                                             const Instance& instance, std::span<const int> slots) {
  MUSTER_ASSIGN(auto rows,
                connection.Own("SELECT s.slot, s.stream, s.error, s.replay, e.event_version,"
                               " e.side_effects FROM $_parked_streams s JOIN $_parked_events e"
                               " USING (replica_set, projection, version, stream)"
                               " WHERE replica_set = ? AND projection = ? AND version = ?"
                               " ORDER BY s.stream, e.event_version"));
  rows->Bind(instance.set, instance.projection, instance.version);
  std::vector<ParkedStream> streams;
  for (;;) {
    MUSTER_ASSIGN(const bool row, rows->Step());
    if (!row) break;
    const int slot = static_cast<int>(rows->Int(0));
    if (std::find(slots.begin(), slots.end(), slot) == slots.end()) continue;
    if (streams.empty() || streams.back().stream != rows->Text(1)) {
      streams.push_back(
          {slot, std::string(rows->Text(1)), std::string(rows->Text(2)), rows->Int(3) != 0, {}});
    }
    streams.back().versions.push_back(rows->Int(4));
    if (rows->Int(5) == 0) streams.back().quiet.insert(rows->Int(4));
  }
  rows->Reset();
  return streams;
}

Result<int64_t> RequestReplays(SqliteModelConnection& connection, const Instance& instance,
                               const std::string& stream) {
  MUSTER_ASSIGN(auto ask,
                connection.Own("UPDATE $_parked_streams SET replay = 1 WHERE replica_set = ?1"
                               " AND projection = ?2 AND version = ?3"
                               " AND (?4 = '' OR stream = ?4)"));
  MUSTER_TRY(ask->Bind(instance.set, instance.projection, instance.version, stream).Run());
  return connection.db().Changes();
}

}  // namespace muster::replica
