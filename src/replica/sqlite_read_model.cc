#include <algorithm>

#include "replica/read_model.h"
#include "replica/sqlite_model_connection.h"
#include "replica/sqlite_model_transaction.h"
#include "replica/sqlite_parked.h"

namespace muster::replica {
namespace {

constexpr std::string_view kSlotColumns =
    "slot, generation, position, handled, digest, skipped, effects_until, mark_position, mark";

SlotState StateFrom(const sql::SqliteStatement& row) {
  return {static_cast<int>(row.Int(0)),
          row.Int(1),
          row.Int(2),
          row.Int(3),
          row.Int(4),
          row.Int(5),
          row.Int(6),
          {row.Int(7), row.Int(8)}};
}

class SqliteReadModel final : public ReadModel {
 public:
  explicit SqliteReadModel(std::unique_ptr<SqliteModelConnection> connection)
      : lender_(std::move(connection)) {}

  Result<std::vector<SlotState>> TakeOver(const Instance& instance, int64_t generation,
                                          std::span<const int> slots) override {
    SqliteModelTransaction transaction(lender_);
    MUSTER_ASSIGN(SqliteModelConnection* const connection, transaction.Begin());
    std::vector<SlotState> states;
    for (const int slot : slots) {
      MUSTER_ASSIGN(auto raise,
                    connection->Own("INSERT INTO $_checkpoints (replica_set, projection, version,"
                                    " slot, generation, position) VALUES (?1, ?2, ?3, ?4, ?5, 0)"
                                    " ON CONFLICT DO UPDATE SET generation = ?5"
                                    " WHERE generation <= ?5"
                                    " RETURNING " +
                                    std::string(kSlotColumns)));
      raise->Bind(instance.set, instance.projection, instance.version, slot, generation);
      MUSTER_ASSIGN(const bool raised, raise->Step());
      const SlotState state = raised ? StateFrom(*raise) : SlotState{};
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
    return std::make_unique<SqliteModelTransaction>(lender_);
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
    SqliteModelTransaction transaction(lender_);
    MUSTER_ASSIGN(SqliteModelConnection* const connection, transaction.Begin());
    if (Status freed = CommitReplayed(*connection, instance, {.replayed = {event}}); !freed) {
      if (freed.error().code != Code::kLeaseLost) return freed;
      return Error{Code::kNotFound, "the event is not parked any more"};
    }
    MUSTER_TRY(ForgetSkipped(*connection, instance, event));
    MUSTER_ASSIGN(auto count, connection->Own("UPDATE $_checkpoints SET skipped = skipped + 1 WHERE"
                                              " replica_set = ? AND projection = ? AND version = ?"
                                              " AND slot = ?"));
    MUSTER_TRY(count->Bind(instance.set, instance.projection, instance.version, event.slot).Run());
    return transaction.Commit();
  }

  Result<std::vector<SlotState>> Slots(const Instance& instance) override {
    const auto connection = lender_.Take();
    MUSTER_ASSIGN(auto rows, connection->Own("SELECT " + std::string(kSlotColumns) +
                                             " FROM $_checkpoints WHERE replica_set = ? AND"
                                             " projection = ? AND version = ? ORDER BY slot"));
    rows->Bind(instance.set, instance.projection, instance.version);
    std::vector<SlotState> states;
    for (;;) {
      MUSTER_ASSIGN(const bool row, rows->Step());
      if (!row) break;
      states.push_back(StateFrom(*rows));
    }
    rows->Reset();
    return states;
  }

  Result<int64_t> HighestGeneration(const std::string& set) override {
    const auto connection = lender_.Take();
    MUSTER_ASSIGN(auto row, connection->Own("SELECT coalesce(max(generation), 0) FROM $_checkpoints"
                                            " WHERE replica_set = ?"));
    row->Bind(set);
    MUSTER_TRY(row->Step());
    const int64_t highest = row->Int(0);
    row->Reset();
    return highest;
  }

  Result<std::vector<ParkedStream>> Parked(const Instance& instance,
                                           std::span<const int> slots) override {
    return ReadParked(*lender_.Take(), instance, slots);
  }

  Result<int64_t> RequestReplay(const Instance& instance, const std::string& stream) override {
    return RequestReplays(*lender_.Take(), instance, stream);
  }

  Status Put(Transaction& given, const Instance& instance,
             std::span<const events::SlotPosition> slots, bool forget) override {
    auto& transaction = static_cast<SqliteModelTransaction&>(given);
    MUSTER_ASSIGN(SqliteModelConnection* const connection, transaction.Begin());
    for (const events::SlotPosition& slot : slots) {
      MUSTER_ASSIGN(auto put,
                    connection->Own("INSERT INTO $_checkpoints (replica_set, projection, version,"
                                    " slot, generation, position) VALUES (?1, ?2, ?3, ?4, 0, ?5)"
                                    " ON CONFLICT DO UPDATE SET position = ?5,"
                                    " mark_position = 0, mark = 0,"
                                    " handled = iif(?6, 0, handled), digest = iif(?6, 0, digest),"
                                    " skipped = iif(?6, 0, skipped)"));
      MUSTER_TRY(put->Bind(instance.set, instance.projection, instance.version, slot.slot,
                           slot.position, forget ? 1 : 0)
                     .Run());
      if (forget) MUSTER_TRY(Unpark(*connection, instance, slot.slot));
    }
    return {};
  }

  Status Forget(Transaction& given, const Instance& instance, bool unless_swapped_in) override {
    auto& transaction = static_cast<SqliteModelTransaction&>(given);
    MUSTER_ASSIGN(SqliteModelConnection* const connection, transaction.Begin());
    MUSTER_ASSIGN(
        auto swapped_in,
        connection->Own("SELECT 1 FROM $_checkpoints WHERE replica_set = ? AND projection = ?"
                        " AND version = ? AND effects_until = ?"));
    swapped_in->Bind(instance.set, instance.projection, instance.version, kEffectsAlways);
    MUSTER_ASSIGN(const bool found, swapped_in->Step());
    swapped_in->Reset();
    if (found && unless_swapped_in) return SwappedIn(instance);
    for (const char* table : {"$_checkpoints", "$_parked_streams", "$_parked_events"}) {
      MUSTER_ASSIGN(auto remove, connection->Own("DELETE FROM " + std::string(table) +
                                                 " WHERE replica_set = ? AND projection = ?"
                                                 " AND version = ?"));
      MUSTER_TRY(remove->Bind(instance.set, instance.projection, instance.version).Run());
    }
    return {};
  }

 private:
  static Status TryCommit(SqliteModelTransaction& transaction, const Instance& instance,
                          const ReadModelProgress& progress) {
    MUSTER_ASSIGN(SqliteModelConnection* const connection, transaction.Begin());
    for (const SlotMove& move : progress.moves) {
      MUSTER_ASSIGN(
          auto advance,
          connection->Own("UPDATE $_checkpoints SET position = ?6, handled = handled + ?7,"
                          " digest = (digest | ?8) - (digest & ?8), skipped = skipped + ?11,"
                          " mark_position = iif(?12 = 0, mark_position, ?12),"
                          " mark = iif(?12 = 0, mark, ?13)"
                          " WHERE replica_set = ?1 AND projection = ?2 AND version = ?3"
                          " AND slot = ?4 AND position = ?5 AND generation = ?9"
                          " AND effects_until = ?10"));
      MUSTER_TRY(advance
                     ->Bind(instance.set, instance.projection, instance.version, move.slot,
                            move.from, move.to, move.handled, move.digest, move.generation,
                            move.effects_until, move.skipped, move.mark.position,
                            move.mark.fingerprint)
                     .Run());
      if (connection->db().Changes() == 1) continue;
      return Error{Code::kLeaseLost, "slot " + std::to_string(move.slot) + " of '" +
                                         instance.projection + "' is not where generation " +
                                         std::to_string(move.generation) + " left it"};
    }
    MUSTER_TRY(CommitParked(*connection, instance, progress));
    MUSTER_TRY(CommitReplayed(*connection, instance, progress));
    MUSTER_TRY(CommitFailed(*connection, instance, progress));
    return transaction.Commit();
  }

  // Parameters in order: set, projection, the old version, the new one.
  static Status TrySwap(SqliteModelTransaction& transaction, const Instance& from, int to,
                        int slots) {
    if (from.version == to) return SwappedIn(from);
    MUSTER_ASSIGN(SqliteModelConnection* const connection, transaction.Begin());
    const std::string other =
        " FROM $_checkpoints o WHERE o.replica_set = ?1 AND o.projection = ?2 AND"
        " o.slot = c.slot AND o.version = ";
    MUSTER_ASSIGN(
        auto ahead,
        connection->Own("SELECT count(*) FROM $_checkpoints c WHERE replica_set = ?1 AND"
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
      MUSTER_ASSIGN(auto change, connection->Own(sql));
      MUSTER_TRY(change->Bind(from.set, from.projection, from.version, to).Run());
    }
    return transaction.Commit();
  }

  SqliteModelLender lender_;
};

}  // namespace

Result<std::unique_ptr<ReadModel>> OpenSqliteReadModel(const std::string& path,
                                                       const std::string& space) {
  MUSTER_ASSIGN(auto connection, SqliteModelConnection::Open(path, space));
  return std::make_unique<SqliteReadModel>(std::move(connection));
}

}  // namespace muster::replica
