#include <algorithm>
#include <map>
#include <mutex>

#include "replica/read_model.h"
#include "sql/sqlite.h"

namespace muster::replica {
namespace {

constexpr std::chrono::milliseconds kBusyTimeout{10'000};
constexpr size_t kMaxStatements = 256;

// $ is the namespace.
constexpr std::string_view kSchema = R"(
CREATE TABLE IF NOT EXISTS $_checkpoints (
  replica_set TEXT    NOT NULL,
  projection  TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  slot        INTEGER NOT NULL,
  generation  INTEGER NOT NULL,  -- the fence
  position    INTEGER NOT NULL,
  handled     INTEGER NOT NULL DEFAULT 0,
  digest      INTEGER NOT NULL DEFAULT 0,
  skipped     INTEGER NOT NULL DEFAULT 0,
  effects_until INTEGER NOT NULL DEFAULT -1,
  PRIMARY KEY (replica_set, projection, version, slot)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS $_parked_streams (
  replica_set TEXT    NOT NULL,
  projection  TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  stream      TEXT    NOT NULL,
  slot        INTEGER NOT NULL,
  error       TEXT    NOT NULL,
  replay      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (replica_set, projection, version, stream)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS $_parked_events (
  replica_set   TEXT    NOT NULL,
  projection    TEXT    NOT NULL,
  version       INTEGER NOT NULL,
  stream        TEXT    NOT NULL,
  event_version INTEGER NOT NULL,
  side_effects  INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (replica_set, projection, version, stream, event_version)
) STRICT, WITHOUT ROWID;
)";

// Columns missing from tables of earlier versions.
constexpr std::pair<std::string_view, std::string_view> kLaterColumns[] = {
    {"$_checkpoints", "skipped INTEGER NOT NULL DEFAULT 0"},
    {"$_checkpoints", "effects_until INTEGER NOT NULL DEFAULT -1"},
    {"$_parked_events", "side_effects INTEGER NOT NULL DEFAULT 1"},
};

class SqliteReadModel;

// Holds the single connection from its first statement on.
class SqliteModelTransaction final : public Transaction {
 public:
  explicit SqliteModelTransaction(SqliteReadModel& model) : model_(model) {}
  ~SqliteModelTransaction() override { End(); }

  Status Execute(const std::string& sql, std::vector<SqlValue> params) override;
  Result<std::vector<std::vector<SqlValue>>> Query(const std::string& sql,
                                                   std::vector<SqlValue> params) override;

  Status Begin();
  Status Commit();
  void End();  // rolls back unless committed

 private:
  SqliteReadModel& model_;
  std::unique_lock<std::mutex> lock_;
  std::optional<sql::SqliteTransaction> transaction_;
};

class SqliteReadModel final : public ReadModel {
 public:
  Status Open(const std::string& path, const std::string& space) {
    space_ = space;
    MUSTER_ASSIGN(db_, sql::SqliteDb::Open(path, sql::SqliteDb::Mode::kCreate, kBusyTimeout));
    MUSTER_ASSIGN(sql::SqliteTransaction transaction, sql::SqliteTransaction::Begin(*db_));
    MUSTER_TRY(db_->Execute(In(kSchema)));
    for (const auto& [table, column] : kLaterColumns) MUSTER_TRY(AddColumn(In(table), column));
    return transaction.Commit();
  }

  Result<std::vector<SlotState>> TakeOver(const Instance& instance, int64_t generation,
                                          std::span<const int> slots) override {
    SqliteModelTransaction transaction(*this);
    MUSTER_TRY(transaction.Begin());
    std::vector<SlotState> states;
    for (const int slot : slots) {
      MUSTER_ASSIGN(auto raise,
                    Cached("INSERT INTO $_checkpoints (replica_set, projection, version,"
                           " slot, generation, position) VALUES (?1, ?2, ?3, ?4, ?5, 0)"
                           " ON CONFLICT DO UPDATE SET generation = ?5"
                           " WHERE generation <= ?5"
                           " RETURNING generation, position, handled, digest, skipped,"
                           " effects_until"));
      raise->Bind(instance.set, instance.projection, instance.version, slot, generation);
      MUSTER_ASSIGN(const bool raised, raise->Step());
      SlotState state{.slot = slot};
      if (raised) {
        state.generation = raise->Int(0);
        state.position = raise->Int(1);
        state.handled = raise->Int(2);
        state.digest = raise->Int(3);
        state.skipped = raise->Int(4);
        state.effects_until = raise->Int(5);
      }
      raise->Reset();
      if (!raised) {
        return Error{Code::kLeaseLost,
                     "slot " + std::to_string(slot) + " of '" + instance.projection +
                         "' belongs to a later generation than " + std::to_string(generation)};
      }
      states.push_back(state);
    }
    MUSTER_TRY(transaction.Commit());
    return states;
  }

  Result<std::unique_ptr<Transaction>> Begin() override {
    return std::make_unique<SqliteModelTransaction>(*this);
  }

  Status Commit(Transaction& given, const Instance& instance,
                const ReadModelProgress& progress) override {
    auto& transaction = static_cast<SqliteModelTransaction&>(given);
    Status committed = TryCommit(transaction, instance, progress);
    transaction.End();
    return committed;
  }

  Status Commit(Transaction& given) override {
    auto& transaction = static_cast<SqliteModelTransaction&>(given);
    Status committed = transaction.Commit();
    transaction.End();
    return committed;
  }

  Status Swap(Transaction& given, const Instance& from, int to, int slots) override {
    auto& transaction = static_cast<SqliteModelTransaction&>(given);
    Status swapped = TrySwap(transaction, from, to, slots);
    transaction.End();
    return swapped;
  }

  Status SkipParked(const Instance& instance, const ParkedEvent& event) override {
    SqliteModelTransaction transaction(*this);
    MUSTER_TRY(transaction.Begin());
    if (Status freed = CommitReplayed(instance, {.replayed = {event}}); !freed) {
      if (freed.error().code != Code::kLeaseLost) return freed;
      return Error{Code::kNotFound, "the event is not parked any more"};
    }
    MUSTER_ASSIGN(auto count, Cached("UPDATE $_checkpoints SET skipped = skipped + 1 WHERE"
                                     " replica_set = ? AND projection = ? AND version = ?"
                                     " AND slot = ?"));
    MUSTER_TRY(count->Bind(instance.set, instance.projection, instance.version, event.slot).Run());
    return transaction.Commit();
  }

  Result<std::vector<SlotState>> Slots(const Instance& instance) override {
    std::lock_guard lock(mutex_);
    MUSTER_ASSIGN(auto rows, Cached("SELECT slot, generation, position, handled, digest, skipped,"
                                    " effects_until FROM $_checkpoints WHERE replica_set = ? AND"
                                    " projection = ? AND version = ? ORDER BY slot"));
    rows->Bind(instance.set, instance.projection, instance.version);
    std::vector<SlotState> states;
    for (;;) {
      MUSTER_ASSIGN(const bool row, rows->Step());
      if (!row) break;
      states.push_back({static_cast<int>(rows->Int(0)), rows->Int(1), rows->Int(2), rows->Int(3),
                        rows->Int(4), rows->Int(5), rows->Int(6)});
    }
    rows->Reset();
    return states;
  }

  Result<int64_t> HighestGeneration(const std::string& set) override {
    std::lock_guard lock(mutex_);
    MUSTER_ASSIGN(auto row, Cached("SELECT coalesce(max(generation), 0) FROM $_checkpoints"
                                   " WHERE replica_set = ?"));
    row->Bind(set);
    MUSTER_TRY(row->Step());
    const int64_t highest = row->Int(0);
    row->Reset();
    return highest;
  }

  Result<std::vector<ParkedStream>> Parked(const Instance& instance,
                                           std::span<const int> slots) override {
    std::lock_guard lock(mutex_);
    MUSTER_ASSIGN(auto rows, Cached("SELECT s.slot, s.stream, s.error, s.replay, e.event_version,"
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

  Result<int64_t> RequestReplay(const Instance& instance, const std::string& stream) override {
    std::lock_guard lock(mutex_);
    MUSTER_ASSIGN(auto ask, Cached("UPDATE $_parked_streams SET replay = 1 WHERE replica_set = ?1"
                                   " AND projection = ?2 AND version = ?3"
                                   " AND (?4 = '' OR stream = ?4)"));
    MUSTER_TRY(ask->Bind(instance.set, instance.projection, instance.version, stream).Run());
    return db_->Changes();
  }

  Status Put(Transaction& given, const Instance& instance,
             std::span<const events::SlotPosition> slots, bool forget) override {
    auto& transaction = static_cast<SqliteModelTransaction&>(given);
    MUSTER_TRY(transaction.Begin());
    for (const events::SlotPosition& slot : slots) {
      MUSTER_ASSIGN(auto put, Cached("INSERT INTO $_checkpoints (replica_set, projection, version,"
                                     " slot, generation, position) VALUES (?1, ?2, ?3, ?4, 0, ?5)"
                                     " ON CONFLICT DO UPDATE SET position = ?5,"
                                     " handled = iif(?6, 0, handled), digest = iif(?6, 0, digest),"
                                     " skipped = iif(?6, 0, skipped)"));
      MUSTER_TRY(put->Bind(instance.set, instance.projection, instance.version, slot.slot,
                           slot.position, forget ? 1 : 0)
                     .Run());
      if (!forget) continue;
      MUSTER_ASSIGN(auto events,
                    Cached("DELETE FROM $_parked_events WHERE replica_set = ?1 AND projection = ?2"
                           " AND version = ?3 AND stream IN (SELECT stream FROM $_parked_streams"
                           " WHERE replica_set = ?1 AND projection = ?2 AND version = ?3"
                           " AND slot = ?4)"));
      MUSTER_TRY(
          events->Bind(instance.set, instance.projection, instance.version, slot.slot).Run());
      MUSTER_ASSIGN(auto streams, Cached("DELETE FROM $_parked_streams WHERE replica_set = ?1 AND"
                                         " projection = ?2 AND version = ?3 AND slot = ?4"));
      MUSTER_TRY(
          streams->Bind(instance.set, instance.projection, instance.version, slot.slot).Run());
    }
    return {};
  }

  Status Forget(Transaction& given, const Instance& instance, bool unless_swapped_in) override {
    auto& transaction = static_cast<SqliteModelTransaction&>(given);
    MUSTER_TRY(transaction.Begin());
    MUSTER_ASSIGN(auto swapped_in,
                  Cached("SELECT 1 FROM $_checkpoints WHERE replica_set = ? AND projection = ?"
                         " AND version = ? AND effects_until = ?"));
    swapped_in->Bind(instance.set, instance.projection, instance.version, kEffectsAlways);
    MUSTER_ASSIGN(const bool found, swapped_in->Step());
    swapped_in->Reset();
    if (found && unless_swapped_in) return SwappedIn(instance);
    for (const char* table : {"$_checkpoints", "$_parked_streams", "$_parked_events"}) {
      MUSTER_ASSIGN(auto remove, Cached("DELETE FROM " + std::string(table) +
                                        " WHERE replica_set = ? AND projection = ?"
                                        " AND version = ?"));
      MUSTER_TRY(remove->Bind(instance.set, instance.projection, instance.version).Run());
    }
    return {};
  }

 private:
  friend class SqliteModelTransaction;

  std::string In(std::string_view sql) const {
    std::string text;
    for (size_t i = 0; i < sql.size(); ++i) {
      // Only before a table name: $1 is a parameter.
      if (sql[i] == '$' && i + 1 < sql.size() && sql[i + 1] == '_') {
        text += space_;
      } else {
        text += sql[i];
      }
    }
    return text;
  }

  // A cached prepared statement. The caller holds the lock.
  Result<sql::SqliteStatement*> Prepared(const std::string& sql) {
    const auto found = statements_.find(sql);
    if (found != statements_.end()) return &found->second;
    if (statements_.size() >= kMaxStatements) statements_.clear();
    MUSTER_ASSIGN(sql::SqliteStatement statement, db_->Prepare(sql));
    return &(statements_[sql] = std::move(statement));
  }
  Result<sql::SqliteStatement*> Cached(const std::string& sql) { return Prepared(In(sql)); }

  Status TryCommit(SqliteModelTransaction& transaction, const Instance& instance,
                   const ReadModelProgress& progress) {
    MUSTER_TRY(transaction.Begin());
    for (const SlotMove& move : progress.moves) {
      MUSTER_ASSIGN(auto advance,
                    Cached("UPDATE $_checkpoints SET position = ?6, handled = handled + ?7,"
                           " digest = (digest | ?8) - (digest & ?8), skipped = skipped + ?11"
                           " WHERE replica_set = ?1 AND projection = ?2 AND version = ?3"
                           " AND slot = ?4 AND position = ?5 AND generation = ?9"
                           " AND effects_until = ?10"));
      MUSTER_TRY(advance
                     ->Bind(instance.set, instance.projection, instance.version, move.slot,
                            move.from, move.to, move.handled, move.digest, move.generation,
                            move.effects_until, move.skipped)
                     .Run());
      if (db_->Changes() == 1) continue;
      return Error{Code::kLeaseLost, "slot " + std::to_string(move.slot) + " of '" +
                                         instance.projection + "' is not where generation " +
                                         std::to_string(move.generation) + " left it"};
    }
    MUSTER_TRY(CommitParked(instance, progress));
    MUSTER_TRY(CommitReplayed(instance, progress));
    MUSTER_TRY(CommitFailed(instance, progress));
    return transaction.Commit();
  }

  // Parameters in order: set, projection, the old version, the new one.
  Status TrySwap(SqliteModelTransaction& transaction, const Instance& from, int to, int slots) {
    if (from.version == to) return SwappedIn(from);
    MUSTER_TRY(transaction.Begin());
    const std::string other =
        " FROM $_checkpoints o WHERE o.replica_set = ?1 AND o.projection = ?2 AND"
        " o.slot = c.slot AND o.version = ";
    MUSTER_ASSIGN(auto ahead,
                  Cached("SELECT count(*) FROM $_checkpoints c WHERE replica_set = ?1 AND"
                         " projection = ?2 AND version = ?4 AND position >= coalesce((SELECT"
                         " o.position" +
                         other + "?3), 0)"));
    ahead->Bind(from.set, from.projection, from.version, to);
    MUSTER_TRY(ahead->Step());
    const int64_t found = ahead->Int(0);
    ahead->Reset();
    if (found != slots) {
      return Error{Code::kConflict, "version " + std::to_string(to) + " of '" + from.projection +
                                        "' is behind version " + std::to_string(from.version)};
    }
    const std::string always = std::to_string(kEffectsAlways);
    for (const std::string& sql :
         {std::string("INSERT INTO $_checkpoints (replica_set, projection, version, slot,"
                      " generation, position) SELECT replica_set, projection, ?3, slot, 0, 0 FROM"
                      " $_checkpoints WHERE replica_set = ?1 AND projection = ?2 AND version = ?4"
                      " ON CONFLICT DO NOTHING"),
          "UPDATE $_checkpoints AS c SET effects_until = (SELECT o.position" + other +
              "?4) WHERE replica_set = ?1 AND projection = ?2 AND version = ?3 AND (SELECT"
              " o.effects_until" +
              other + "?4) <> " + always,
          "UPDATE $_checkpoints SET effects_until = " + always +
              " WHERE replica_set = ?1 AND projection = ?2 AND version = ?4 AND ?3 <> ?4"}) {
      MUSTER_ASSIGN(auto change, Cached(sql));
      MUSTER_TRY(change->Bind(from.set, from.projection, from.version, to).Run());
    }
    return transaction.Commit();
  }

  Status AddColumn(const std::string& table, std::string_view column) {
    const std::string name(column.substr(0, column.find(' ')));
    MUSTER_ASSIGN(auto there, db_->Prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?"));
    there.Bind(table, name);
    MUSTER_ASSIGN(const bool found, there.Step());
    if (found) return {};
    return db_->Execute("ALTER TABLE " + table + " ADD COLUMN " + std::string(column));
  }

  static Error NotParked(const ParkedEvent& event) {
    return {Code::kLeaseLost, "stream '" + event.stream + "' is not parked as it was"};
  }

  Status CommitParked(const Instance& instance, const ReadModelProgress& progress) {
    for (const ParkedEvent& event : progress.parked) {
      // Without a reason the stream must already exist, which updating zero rows reveals.
      MUSTER_ASSIGN(auto stream,
                    Cached(progress.error.empty()
                               ? "UPDATE $_parked_streams SET slot = ?5 WHERE replica_set = ?1 AND"
                                 " projection = ?2 AND version = ?3 AND stream = ?4"
                               : "INSERT INTO $_parked_streams (replica_set, projection, version,"
                                 " stream, slot, error) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
                                 " ON CONFLICT DO UPDATE SET error = ?6, replay = 0"));
      stream->Bind(instance.set, instance.projection, instance.version, event.stream, event.slot);
      if (!progress.error.empty()) stream->BindAt(6, progress.error);
      MUSTER_TRY(stream->Run());
      if (db_->Changes() != 1) return NotParked(event);
      MUSTER_ASSIGN(auto parked, Cached("INSERT INTO $_parked_events VALUES (?, ?, ?, ?, ?, ?)"
                                        " ON CONFLICT DO NOTHING"));
      MUSTER_TRY(parked
                     ->Bind(instance.set, instance.projection, instance.version, event.stream,
                            event.version, event.side_effects ? 1 : 0)
                     .Run());
    }
    return {};
  }

  Status CommitFailed(const Instance& instance, const ReadModelProgress& progress) {
    for (const ParkedEvent& event : progress.failed) {
      MUSTER_ASSIGN(auto stream,
                    Cached("UPDATE $_parked_streams SET error = ?6, replay = 0 WHERE"
                           " replica_set = ?1 AND projection = ?2 AND version = ?3 AND stream = ?4"
                           " AND EXISTS (SELECT 1 FROM $_parked_events WHERE replica_set = ?1 AND"
                           " projection = ?2 AND version = ?3 AND stream = ?4"
                           " AND event_version = ?5)"));
      MUSTER_TRY(stream
                     ->Bind(instance.set, instance.projection, instance.version, event.stream,
                            event.version, progress.error)
                     .Run());
      if (db_->Changes() != 1) return NotParked(event);
    }
    return {};
  }

  Status CommitReplayed(const Instance& instance, const ReadModelProgress& progress) {
    for (const ParkedEvent& event : progress.replayed) {
      MUSTER_ASSIGN(auto parked,
                    Cached("DELETE FROM $_parked_events WHERE replica_set = ? AND projection = ?"
                           " AND version = ? AND stream = ? AND event_version = ?"));
      MUSTER_TRY(parked
                     ->Bind(instance.set, instance.projection, instance.version, event.stream,
                            event.version)
                     .Run());
      if (db_->Changes() != 1) return NotParked(event);
      MUSTER_ASSIGN(auto stream,
                    Cached("DELETE FROM $_parked_streams AS s WHERE replica_set = ? AND"
                           " projection = ? AND version = ? AND stream = ? AND NOT EXISTS (SELECT 1"
                           " FROM $_parked_events e WHERE e.replica_set = s.replica_set AND"
                           " e.projection = s.projection AND e.version = s.version AND"
                           " e.stream = s.stream)"));
      MUSTER_TRY(
          stream->Bind(instance.set, instance.projection, instance.version, event.stream).Run());
    }
    return {};
  }

  std::string space_;
  std::mutex mutex_;
  std::unique_ptr<sql::SqliteDb> db_;
  std::map<std::string, sql::SqliteStatement> statements_;  // destroyed before the database
};

Status SqliteModelTransaction::Begin() {
  if (transaction_) return {};
  lock_ = std::unique_lock(model_.mutex_);
  auto begun = sql::SqliteTransaction::Begin(*model_.db_);
  if (!begun) {
    lock_.unlock();
    return begun.error();
  }
  transaction_.emplace(*std::move(begun));
  return {};
}

void SqliteModelTransaction::End() {
  transaction_.reset();
  if (lock_.owns_lock()) lock_.unlock();
}

Status SqliteModelTransaction::Commit() {
  if (!transaction_) return {};
  return transaction_->Commit();
}

Status SqliteModelTransaction::Execute(const std::string& sql, std::vector<SqlValue> params) {
  MUSTER_TRY(Query(sql, std::move(params)));
  return {};
}

Result<std::vector<std::vector<SqlValue>>> SqliteModelTransaction::Query(
    const std::string& sql, std::vector<SqlValue> params) {
  MUSTER_TRY(Begin());
  MUSTER_ASSIGN(sql::SqliteStatement * statement, model_.Prepared(sql));
  for (size_t i = 0; i < params.size(); ++i) {
    const int parameter = statement->Parameter("$" + std::to_string(i + 1));
    if (parameter > 0) statement->BindAt(parameter, params[i]);
  }
  std::vector<std::vector<SqlValue>> rows;
  for (;;) {
    MUSTER_ASSIGN(const bool row, statement->Step());
    if (!row) break;
    std::vector<SqlValue>& values = rows.emplace_back();
    for (int column = 0; column < statement->columns(); ++column) {
      if (statement->IsNull(column)) {
        values.emplace_back();
      } else {
        values.emplace_back(std::string(statement->Text(column)));
      }
    }
  }
  statement->Reset();
  // Its changes would be committed without the checkpoint, or lost with it.
  if (!model_.db_->InTransaction()) {
    return Error{Code::kInvalid, "a statement has ended the transaction: " + sql};
  }
  return rows;
}

}  // namespace

Result<std::unique_ptr<ReadModel>> OpenSqliteReadModel(const std::string& path,
                                                       const std::string& space) {
  auto model = std::make_unique<SqliteReadModel>();
  MUSTER_TRY(model->Open(path, space));
  return model;
}

}  // namespace muster::replica
