#include "change/follow_source.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include "change/table_names.h"
#include "core/backoff.h"
#include "core/number.h"
#include "core/url.h"
#include "sql/postgres_uri.h"

namespace muster::change {
namespace {

constexpr size_t kMaxName = 40;  // PostgreSQL's limit for names is 63 bytes
constexpr int kWithMarks = 140'000;
constexpr std::chrono::seconds kReaderLeavesWithin{5};
constexpr std::string_view kOutboxSuffix = "_outbox";

Status CheckOptions(const FollowOptions& options) {
  const bool good =
      !options.name.empty() && options.name.size() <= kMaxName &&
      options.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  if (good) return {};
  return Error{Code::kInvalid, "'" + options.name + "' is not a name for a slot",
               "use up to 40 lower-case letters, digits and underscores"};
}

// The formats that PostgreSQL's own subscribers request, independent of the role's settings.
sql::PgOptions OptionsFor(const std::string& uri) {
  return {.uri = uri,
          .settings = {{"datestyle", "ISO"},
                       {"intervalstyle", "postgres"},
                       {"extra_float_digits", "3"},
                       {"bytea_output", "hex"},
                       {"timezone", "UTC"},
                       {"lc_monetary", "C"},
                       {"default_transaction_read_only", "off"}}};
}

}  // namespace

Result<FollowSource> FollowSource::Open(const FollowOptions& options) {
  MUSTER_TRY(CheckOptions(options));
  MUSTER_ASSIGN(const Url url, ParseUrl(options.source));
  if (url.scheme != "postgresql" && url.scheme != "postgres") {
    return Error{Code::kInvalid, "only PostgreSQL can be followed",
                 "write postgresql://USER@HOST:PORT/DATABASE"};
  }
  MUSTER_ASSIGN(std::string uri, sql::PostgresUri(url, "the source's URL", {}));
  FollowSource source(options, std::move(uri));
  MUSTER_ASSIGN(source.connection_, sql::PgConnection::Open(OptionsFor(source.uri_)));
  return source;
}

Result<sql::PgResult> FollowSource::Ask(const std::string& sql, bool writes) {
  const sql::PgStatement statement{.name = "", .sql = sql, .writes = writes, .text_results = true};
  return connection_->Execute(statement, sql::PgParams());
}

// Both, even if one is empty: a publication created later does not cover earlier changes, and the
// server then ends the stream.
std::vector<std::string> FollowSource::Publications() const {
  return {Slot(), Slot() + std::string(kOutboxSuffix)};
}

Result<FollowSource::Publication> FollowSource::Read(const std::string& name) {
  MUSTER_ASSIGN(const sql::PgResult found,
                Ask("SELECT obj_description(p.oid, 'pg_publication'), n.nspname, c.relname, c.oid "
                    "FROM pg_publication p LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid "
                    "LEFT JOIN pg_class c ON c.oid = r.prrelid "
                    "LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE p.pubname = " +
                    sql::PgLiteral(name)));
  Publication publication{.exists = found.rows() > 0};
  for (int row = 0; row < found.rows(); ++row) {
    publication.id = found.Text(row, 0);
    if (found.IsNull(row, 2)) continue;  // it has no tables
    const std::string table =
        sql::PgIdentifier(found.Text(row, 1)) + "." + sql::PgIdentifier(found.Text(row, 2));
    publication.tables[table] = ParseNumber<int64_t>(found.Text(row, 3)).value_or(0);
  }
  return publication;
}

Status FollowSource::CheckOwned(const FollowCheckpoint& checkpoint) {
  std::map<std::string, int64_t> published;
  for (const std::string& name : Publications()) {
    MUSTER_ASSIGN(const Publication publication, Read(name));
    if (publication.exists && publication.id != checkpoint.id) {
      return Error{Code::kIncompatible,
                   connection_->Place() + ": publication '" + name + "' belongs to another log",
                   "choose another --name"};
    }
    published.insert(publication.tables.begin(), publication.tables.end());
  }
  std::set<std::string, std::less<>> wanted;
  for (const std::string& table : options_.tables) wanted.insert(Quoted(table));
  for (const Outbox& outbox : options_.outboxes) wanted.insert(Quoted(outbox.table));
  for (const auto& [table, oid] : checkpoint.tables) {
    if (!wanted.contains(table)) continue;  // not followed any more, on request
    const auto found = published.find(table);
    if (found == published.end()) return StartOver(table + " is no longer published");
    if (found->second != oid) return StartOver(table + " was dropped, and is another table now");
  }
  return {};
}

Result<std::map<std::string, int64_t>> FollowSource::Publish(const std::string& id) {
  std::vector<std::string> outboxes;
  for (const Outbox& outbox : options_.outboxes) outboxes.push_back(outbox.table);
  const std::vector<std::string> names = Publications();
  MUSTER_TRY(PublishAs(names[0], options_.tables, "insert, update, delete, truncate", id));
  // Only inserts: no key is needed.
  MUSTER_TRY(PublishAs(names[1], outboxes, "insert", id));
  std::map<std::string, int64_t> tables;
  for (const std::string& name : names) {
    MUSTER_ASSIGN(const Publication publication, Read(name));
    tables.insert(publication.tables.begin(), publication.tables.end());
  }
  return tables;
}

Status FollowSource::PublishAs(const std::string& name, const std::vector<std::string>& tables,
                               const std::string& operations, const std::string& id) {
  std::vector<std::string> wanted;
  for (const std::string& table : tables) wanted.push_back(Quoted(table));
  std::sort(wanted.begin(), wanted.end());
  MUSTER_ASSIGN(const Publication existing, Read(name));
  std::vector<std::string> present;
  for (const auto& [table, oid] : existing.tables) present.push_back(table);
  std::sort(present.begin(), present.end());
  const std::string quoted = sql::PgIdentifier(name);
  if (!existing.exists) {
    const sql::PgStatement create{
        "", "CREATE PUBLICATION " + quoted +
                (wanted.empty() ? "" : " FOR TABLE " + Joined(wanted, ", ")) +
                " WITH (publish = '" + operations + "', publish_via_partition_root = true)"};
    const sql::PgStatement comment{
        "", "COMMENT ON PUBLICATION " + quoted + " IS " + sql::PgLiteral(id)};
    const sql::PgParams none{};
    const std::array<sql::PgCall, 2> calls{sql::PgCall{create, none}, sql::PgCall{comment, none}};
    MUSTER_TRY(connection_->Execute(calls));
    return {};
  }
  if (present == wanted) return {};
  MUSTER_TRY(Ask("ALTER PUBLICATION " + quoted +
                     (wanted.empty() ? " DROP TABLE " + Joined(present, ", ")
                                     : " SET TABLE " + Joined(wanted, ", ")),
                 true));
  return {};
}

Error FollowSource::StartOver(const std::string& why) const {
  return Error{Code::kIncompatible, connection_->Place() + ": " + why,
               "some changes are missing: compare what was built from the events, then start over "
               "with 'muster events unfollow' and 'muster events follow'"};
}

Result<std::optional<sql::PgLsn>> FollowSource::SlotPosition() {
  MUSTER_ASSIGN(const sql::PgResult slot,
                Ask("SELECT plugin, database = current_database(), wal_status, "
                    "confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = " +
                    sql::PgLiteral(Slot())));
  if (slot.rows() == 0) return std::optional<sql::PgLsn>();
  if (slot.Text(0, 0) != "pgoutput" || slot.Text(0, 1) != "t") {
    return Error{Code::kIncompatible,
                 connection_->Place() + ": slot '" + Slot() + "' is for something else",
                 "choose another --name"};
  }
  if (slot.Text(0, 2) == "lost") {
    return StartOver("the server has removed changes that slot '" + Slot() +
                     "' had not read yet (max_slot_wal_keep_size)");
  }
  const auto position = sql::ParsePgLsn(slot.Text(0, 3));
  if (!position) return StartOver("slot '" + Slot() + "' has no position");
  return position;
}

Result<sql::PgLsn> FollowSource::CreateSlot() {
  MUSTER_ASSIGN(sql::PgReplication connection, sql::PgReplication::Open(OptionsFor(uri_)));
  auto created = connection.CreateSlot(Slot());
  // The server refused: all of its slots are in use.
  if (!created && created.error().code == Code::kUnavailable) {
    return Error{Code::kUnavailable, created.error().message,
                 "drop a slot that is not needed, or raise max_replication_slots"};
  }
  if (created || !IsTransient(created.error().code)) return created;
  const auto oldest =
      Ask("SELECT pid, usename, date_trunc('second', now() - xact_start) FROM pg_stat_activity "
          "WHERE backend_xid IS NOT NULL ORDER BY xact_start LIMIT 1");
  Error error{Code::kUnavailable, created.error().message};
  if (oldest && oldest->rows() == 1) {
    error.message = connection_->Place() + ": a new slot waits for transactions to end; process " +
                    std::string(oldest->Text(0, 0)) + " of '" + std::string(oldest->Text(0, 1)) +
                    "' has had one for " + std::string(oldest->Text(0, 2));
    error.hint = "end it, or wait";
  }
  return error;
}

Result<sql::PgSystem> FollowSource::System() {
  MUSTER_ASSIGN(sql::PgReplication connection, sql::PgReplication::Open(OptionsFor(uri_)));
  return connection.Identify();
}

Status FollowSource::CheckContinues(const FollowCheckpoint& checkpoint) {
  MUSTER_ASSIGN(sql::PgReplication connection, sql::PgReplication::Open(OptionsFor(uri_)));
  MUSTER_ASSIGN(const sql::PgSystem system, connection.Identify());
  const sql::PgSystem& known = checkpoint.system;
  if (system.id != known.id) {
    return StartOver("it is not the server followed so far (system " + system.id + ", not " +
                     known.id + ")");
  }
  if (system.timeline != known.timeline) {
    MUSTER_ASSIGN(const auto end, connection.EndOfTimeline(known.timeline, system.timeline));
    if (!end || *end < checkpoint.end) {
      return StartOver(
          "the server went back in time: it was restored, or a standby was promoted "
          "that lacked changes which are in the log");
    }
  }
  MUSTER_ASSIGN(const sql::PgLsn written, Position());
  if (written < checkpoint.end) {
    return StartOver("the server went back in time: it is at " + sql::PgLsnText(written) +
                     ", and was followed to " + sql::PgLsnText(checkpoint.end));
  }
  MUSTER_ASSIGN(const auto position, SlotPosition());
  if (!position) return StartOver("slot '" + Slot() + "' is gone");
  if (*position > checkpoint.end) {
    return StartOver("slot '" + Slot() + "' is at " + sql::PgLsnText(*position) +
                     ", ahead of the log's checkpoint " + sql::PgLsnText(checkpoint.end) +
                     ": the log was restored, or the slot was read or created by others");
  }
  return {};
}

Result<sql::PgReplication> FollowSource::Stream(const FollowCheckpoint& checkpoint) {
  MUSTER_ASSIGN(sql::PgReplication stream, sql::PgReplication::Open(OptionsFor(uri_)));
  MUSTER_TRY(stream.Start(Slot(), checkpoint.end, Publications()));
  return stream;
}

Result<std::vector<std::string>> FollowSource::KeyOf(uint32_t oid) {
  MUSTER_ASSIGN(const sql::PgResult found,
                Ask("SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid "
                    "AND attnum = ANY(indkey) WHERE indisprimary AND indrelid = " +
                    std::to_string(oid)));
  std::vector<std::string> names;
  for (int row = 0; row < found.rows(); ++row) names.emplace_back(found.Text(row, 0));
  return names;
}

Result<std::optional<std::string>> FollowSource::Mark(Env& env) {
  if (connection_->ServerVersion() < kWithMarks) return std::optional<std::string>();
  std::string id = env.NewId();
  MUSTER_TRY(Ask("SELECT pg_logical_emit_message(true, 'muster', '" + id + "')"));
  return std::optional(std::move(id));
}

Result<sql::PgLsn> FollowSource::Position() {
  MUSTER_ASSIGN(const sql::PgResult answer, Ask("SELECT pg_current_wal_lsn()"));
  return sql::ParsePgLsn(answer.Text(0, 0)).value_or(0);
}

Result<bool> FollowSource::Exists() {
  MUSTER_ASSIGN(const sql::PgResult found,
                Ask("SELECT FROM pg_replication_slots WHERE slot_name = " + sql::PgLiteral(Slot()) +
                    " UNION ALL SELECT FROM pg_publication WHERE pubname = " +
                    sql::PgLiteral(Publications()[0])));
  return found.rows() > 0;
}

Status FollowSource::Remove(Env& env) {
  // The server releases the slot of a follower that has just ended with a delay.
  const MonoTime deadline = env.MonoNow() + kReaderLeavesWithin;
  for (Backoff backoff(env);;) {
    MUSTER_ASSIGN(const sql::PgResult slot,
                  Ask("SELECT active_pid FROM pg_replication_slots WHERE slot_name = " +
                      sql::PgLiteral(Slot())));
    if (slot.rows() == 0) break;
    if (slot.IsNull(0, 0)) {
      MUSTER_TRY(Ask("SELECT pg_drop_replication_slot(" + sql::PgLiteral(Slot()) + ")", true));
      break;
    }
    if (!backoff.PauseBefore(deadline)) {
      return Error{Code::kConflict,
                   connection_->Place() + ": slot '" + Slot() + "' is being read, by process " +
                       std::string(slot.Text(0, 0)) + " of the server",
                   "stop 'muster events follow' first"};
    }
  }
  for (const std::string& name : Publications()) {
    MUSTER_TRY(Ask("DROP PUBLICATION IF EXISTS " + sql::PgIdentifier(name), true));
  }
  return {};
}

}  // namespace muster::change
