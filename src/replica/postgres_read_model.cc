#include <algorithm>
#include <deque>
#include <functional>
#include <set>

#include "replica/postgres_model_transaction.h"
#include "replica/postgres_read_model_schema.h"
#include "replica/postgres_read_model_statements.h"
#include "replica/read_model.h"
#include "sql/postgres_schema.h"

namespace muster::replica {
namespace {

constexpr size_t kMaxConnections = 64;

class PostgresReadModel final : public ReadModel {
 public:
  PostgresReadModel(const std::string& uri, const std::string& space, const CallLimits& limits)
      : space_(space),
        statements_(space),
        pool_(Options(uri, limits.usual), kMaxConnections),
        patient_(Options(uri, limits.longest), kMaxConnections) {}

  Status Open() {
    MUSTER_ASSIGN(auto connection, pool_.Take());
    return sql::MigratePgTables(*connection, space_, PostgresReadModelTables());
  }

  Result<std::vector<SlotState>> TakeOver(const Instance& instance, int64_t generation,
                                          std::span<const int> slots) override {
    const auto self = [](int slot) { return slot; };
    PostgresModelCall create(statements_.create), raise(statements_.raise);
    create.Of(instance).Ints(slots, self);
    raise.Of(instance).Ints(slots, self).params.Int64(generation);
    MUSTER_ASSIGN(auto connection, pool_.Take());
    const sql::PgParams none = {};
    const sql::PgCall calls[] = {{statements_.limit_waits, none},
                                 {create.statement, create.params},
                                 {raise.statement, raise.params}};
    auto results = connection->Execute(calls);
    if (!results && sql::IsPgLockTimeout(results.error())) {
      MUSTER_ASSIGN(const std::string holders, EndStalled(*connection));
      results = connection->Execute(calls);
      if (!results) return results.error().Within("checkpoints are locked by " + holders);
    }
    if (!results) return results.error();
    std::vector<SlotState> states = StatesFrom((*results)[2]);
    if (states.size() != slots.size()) {
      return Error{Code::kLeaseLost, "slots of '" + instance.projection +
                                         "' belong to a later generation than " +
                                         std::to_string(generation)};
    }
    return states;
  }

  Result<std::unique_ptr<Transaction>> Begin() override {
    return std::make_unique<PostgresModelTransaction>(pool_, patient_);
  }

  void LimitIdle(Transaction& transaction, milliseconds limit) override {
    static_cast<PostgresModelTransaction&>(transaction).LimitIdle(limit);
  }

  void AllowLongCalls(Transaction& transaction) override {
    static_cast<PostgresModelTransaction&>(transaction).AllowLongCalls();
  }

  void EndCallsBy(Transaction& transaction, MonoTime deadline) override {
    static_cast<PostgresModelTransaction&>(transaction).EndCallsBy(deadline);
  }

  bool IsDeadlock(const Error& error) const override { return sql::IsPgDeadlock(error); }

  Status Serialize(Transaction& transaction, const Instance& instance) override {
    return transaction.Execute(
        "SELECT pg_advisory_xact_lock(hashtextextended('muster serial ' || $1::text, 0))",
        {instance.set + "/" + instance.projection + "/" + std::to_string(instance.version)});
  }

  Status Commit(Transaction& given, const Instance& instance,
                const ReadModelProgress& progress) override {
    auto& transaction = static_cast<PostgresModelTransaction&>(given);
    AddMoves(transaction.waiting(), instance, progress);
    AddParked(transaction.waiting(), instance, progress);
    Status committed = transaction.Commit();
    if (!committed && committed.error().message.find(kFenced) != std::string::npos) {
      return Error{Code::kLeaseLost, "slots of '" + instance.projection +
                                         "' are not where this generation left them"};
    }
    return committed;
  }

  Status Commit(Transaction& given) override {
    return static_cast<PostgresModelTransaction&>(given).Commit();
  }

  Status Swap(Transaction& given, const Instance& from, int to, int slots) override {
    auto& transaction = static_cast<PostgresModelTransaction&>(given);
    for (const sql::PgStatement& statement : statements_.swap) {
      PostgresModelCall& call = transaction.waiting().emplace_back(statement);
      call.Of(from).params.Int32(to);
      if (statement.sql.find("$5") != std::string::npos) call.params.Int32(slots);
    }
    Status swapped = transaction.Commit();
    if (!swapped && swapped.error().message.find(kFenced) != std::string::npos) {
      return Error{Code::kConflict, "version " + std::to_string(to) + " of '" + from.projection +
                                        "' is behind version " + std::to_string(from.version)};
    }
    return swapped;
  }

  Status SkipParked(const Instance& instance, const ParkedEvent& event) override {
    PostgresModelTransaction transaction(pool_, patient_);
    AddParked(transaction.waiting(), instance, {.replayed = {event}});
    PostgresModelCall& forget = transaction.waiting().emplace_back(statements_.forget_skipped);
    forget.Of(instance).params.Text(forget.texts.emplace_back(event.stream));
    forget.params.Int64(event.version);
    forget.params.Text(forget.texts.emplace_back(SkippedError(event.version)));
    PostgresModelCall& count = transaction.waiting().emplace_back(statements_.count_skipped);
    count.Of(instance).params.Int32(event.slot);
    Status skipped = transaction.Commit();
    if (!skipped && skipped.error().message.find(kFenced) != std::string::npos) {
      return Error{Code::kNotFound, "the event is not parked any more"};
    }
    return skipped;
  }

  Result<std::vector<SlotState>> Slots(const Instance& instance) override {
    PostgresModelCall call(statements_.slots);
    MUSTER_ASSIGN(const sql::PgResult rows, Run(call.Of(instance)));
    return StatesFrom(rows);
  }

  Result<int64_t> HighestGeneration(const std::string& set) override {
    PostgresModelCall call(statements_.highest);
    call.params.Text(set);
    MUSTER_ASSIGN(const sql::PgResult rows, Run(call));
    return rows.Int64(0, 0);
  }

  Result<std::vector<ParkedStream>> Parked(const Instance& instance,
                                           std::span<const int> slots) override {
    PostgresModelCall call(statements_.parked);
    call.Of(instance).Ints(slots, [](int slot) { return slot; });
    MUSTER_ASSIGN(const sql::PgResult rows, Run(call));
    std::vector<ParkedStream> streams;
    for (int row = 0; row < rows.rows(); ++row) {
      if (streams.empty() || streams.back().stream != rows.Text(row, 1)) {
        streams.push_back({rows.Int32(row, 0),
                           std::string(rows.Text(row, 1)),
                           std::string(rows.Text(row, 2)),
                           rows.Int32(row, 3) != 0,
                           {}});
      }
      streams.back().versions.push_back(rows.Int64(row, 4));
      if (rows.Int32(row, 5) == 0) streams.back().quiet.insert(rows.Int64(row, 4));
    }
    return streams;
  }

  Result<int64_t> RequestReplay(const Instance& instance, const std::string& stream) override {
    PostgresModelCall call(statements_.ask);
    call.Of(instance).params.Text(stream);
    MUSTER_ASSIGN(const sql::PgResult result, Run(call));
    return result.affected();
  }

  Status Put(Transaction& given, const Instance& instance,
             std::span<const events::SlotPosition> slots, bool forget) override {
    auto& waiting = static_cast<PostgresModelTransaction&>(given).waiting();
    const auto slot_of = [](const events::SlotPosition& slot) { return slot.slot; };
    waiting.emplace_back(statements_.put)
        .Of(instance)
        .Ints(slots, slot_of)
        .Longs(slots, [](const events::SlotPosition& slot) { return slot.position; })
        .params.Int32(forget ? 1 : 0);
    if (!forget) return {};
    waiting.emplace_back(statements_.unpark_events).Of(instance).Ints(slots, slot_of);
    waiting.emplace_back(statements_.unpark_streams).Of(instance).Ints(slots, slot_of);
    return {};
  }

  Status Forget(Transaction& given, const Instance& instance, bool unless_swapped_in) override {
    MUSTER_ASSIGN(
        const auto rows,
        given.Query(sql::InPgSchema("SELECT effects_until FROM $S.checkpoints WHERE "
                                    "replica_set = $1::text AND projection = $2::text AND "
                                    "version = $3::integer ORDER BY slot FOR UPDATE",
                                    space_),
                    {instance.set, instance.projection, std::to_string(instance.version)}));
    for (const auto& row : rows) {
      if (unless_swapped_in && row.front() == std::to_string(kEffectsAlways)) {
        return SwappedIn(instance);
      }
    }
    for (const sql::PgStatement& statement : statements_.forget) {
      static_cast<PostgresModelTransaction&>(given).waiting().emplace_back(statement).Of(instance);
    }
    return {};
  }

 private:
  static sql::PgOptions Options(const std::string& uri, milliseconds call_timeout) {
    sql::PgOptions options;
    options.uri = uri;
    options.call_timeout = call_timeout;
    options.settings = {{"default_transaction_isolation", "read committed"}};
    return options;
  }

  // Describes the sessions that it ended, or may not end.
  Result<std::string> EndStalled(sql::PgConnection& connection) {
    const sql::PgParams none = {};
    MUSTER_ASSIGN(const sql::PgResult rows, connection.Execute(statements_.end_stalled, none));
    std::string holders;
    for (int row = 0; row < rows.rows(); ++row) {
      holders += (row == 0 ? "process " : ", ") + std::string(rows.Text(row, 0)) + " of " +
                 std::string(rows.Text(row, 1)) + " (" + std::string(rows.Text(row, 2)) + ")";
    }
    return holders.empty() ? "another session at " + connection.Place() : holders;
  }

  Result<sql::PgResult> Run(const PostgresModelCall& call) {
    MUSTER_ASSIGN(auto connection, pool_.Take());
    return connection->Execute(call.statement, call.params);
  }

  static std::vector<SlotState> StatesFrom(const sql::PgResult& rows) {
    std::vector<SlotState> states;
    for (int row = 0; row < rows.rows(); ++row) {
      states.push_back({rows.Int32(row, 0), rows.Int64(row, 1), rows.Int64(row, 2),
                        rows.Int64(row, 3), rows.Int64(row, 4), rows.Int64(row, 5),
                        rows.Int64(row, 6),
                        events::EventMark{rows.Int64(row, 7), rows.Int64(row, 8)}});
    }
    return states;
  }

  // First: a fenced-off follower should not even try the rest.
  void AddMoves(std::deque<PostgresModelCall>& calls, const Instance& instance,
                const ReadModelProgress& progress) const {
    if (progress.moves.empty()) return;
    const auto [lowest, highest] =
        std::minmax_element(progress.moves.begin(), progress.moves.end(),
                            [](const SlotMove& a, const SlotMove& b) { return a.slot < b.slot; });
    const int first = lowest->slot;
    const auto by_slot = [&](auto get) {
      std::vector<int64_t> values(static_cast<size_t>(highest->slot - first + 1));
      for (const SlotMove& move : progress.moves) {
        values[static_cast<size_t>(move.slot - first)] = std::invoke(get, move);
      }
      return values;
    };
    const auto self = [](int64_t value) { return value; };
    // After an explicit BEGIN everything is in one transaction anyway.
    PostgresModelCall& call = calls.emplace_front(statements_.move);
    call.Of(instance).Ints(progress.moves, [](const SlotMove& move) { return move.slot; });
    call.params.Int32(first);
    call.Longs(by_slot(&SlotMove::generation), self)
        .Longs(by_slot(&SlotMove::from), self)
        .Longs(by_slot(&SlotMove::to), self)
        .Longs(by_slot(&SlotMove::handled), self)
        .Longs(by_slot(&SlotMove::digest), self)
        .Longs(by_slot(&SlotMove::effects_until), self)
        .Longs(by_slot(&SlotMove::skipped), self)
        .Longs(by_slot([](const SlotMove& move) { return move.mark.position; }), self)
        .Longs(by_slot([](const SlotMove& move) { return move.mark.fingerprint; }), self);
  }

  void AddParked(std::deque<PostgresModelCall>& calls, const Instance& instance,
                 const ReadModelProgress& progress) const {
    const auto stream = [](const ParkedEvent& event) { return std::string_view(event.stream); };
    const auto version = [](const ParkedEvent& event) { return event.version; };
    if (!progress.parked.empty() && progress.error.empty()) {
      std::set<std::string_view> streams;
      for (const ParkedEvent& event : progress.parked) streams.insert(event.stream);
      calls.emplace_back(statements_.are_parked)
          .Of(instance)
          .Texts(streams, [](std::string_view name) { return name; });
    } else if (!progress.parked.empty()) {
      PostgresModelCall& streams = calls.emplace_back(statements_.park_streams);
      streams.Of(instance)
          .Texts(progress.parked, stream)
          .Ints(progress.parked, [](const ParkedEvent& event) { return event.slot; });
      streams.params.Text(streams.texts.emplace_back(progress.error));
    }
    if (!progress.parked.empty()) {
      calls.emplace_back(statements_.park_events)
          .Of(instance)
          .Texts(progress.parked, stream)
          .Longs(progress.parked, version)
          .Ints(progress.parked,
                [](const ParkedEvent& event) { return event.side_effects ? 1 : 0; });
    }
    for (const ParkedEvent& event : progress.failed) {
      const std::span<const ParkedEvent> one(&event, 1);
      PostgresModelCall& failed = calls.emplace_back(statements_.fail_replay);
      failed.Of(instance).Texts(one, stream).Longs(one, version);
      failed.params.Text(failed.texts.emplace_back(progress.error));
    }
    if (!progress.replayed.empty()) {
      calls.emplace_back(statements_.free_events)
          .Of(instance)
          .Texts(progress.replayed, stream)
          .Longs(progress.replayed, version);
      calls.emplace_back(statements_.free_streams).Of(instance).Texts(progress.replayed, stream);
    }
  }

  const std::string space_;
  const PostgresReadModelStatements statements_;
  sql::PostgresPool pool_;
  sql::PostgresPool patient_;  // for calls that may take long
};

}  // namespace

Result<std::unique_ptr<ReadModel>> OpenPostgresReadModel(const std::string& uri,
                                                         const std::string& space,
                                                         const CallLimits& limits) {
  auto model = std::make_unique<PostgresReadModel>(uri, space, limits);
  MUSTER_TRY(model->Open());
  return model;
}

}  // namespace muster::replica
