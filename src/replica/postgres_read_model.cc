#include <algorithm>
#include <deque>
#include <set>

#include "core/sha256.h"
#include "events/events.h"
#include "replica/read_model.h"
#include "sql/postgres.h"
#include "store/store.h"

namespace muster::replica {
namespace {

constexpr size_t kMaxConnections = 64;
constexpr std::string_view kFenced = "muster: fenced";

const std::vector<std::string>& Schema() {
  static const std::vector<std::string> kSchema = {
      // Rows are updated with every batch: spare room keeps updates on the page (HOT).
      R"(CREATE TABLE $S.checkpoints (
           replica_set text    NOT NULL,
           projection  text    NOT NULL,
           version     integer NOT NULL,
           slot        integer NOT NULL,
           generation  bigint  NOT NULL,
           position    bigint  NOT NULL,
           handled     bigint  NOT NULL DEFAULT 0,
           digest      bigint  NOT NULL DEFAULT 0,
           skipped     bigint  NOT NULL DEFAULT 0,
           effects_until bigint NOT NULL DEFAULT -1,
           PRIMARY KEY (replica_set, projection, version, slot))
         WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0,
               autovacuum_vacuum_threshold = 5000))",
      R"(CREATE TABLE $S.parked_streams (
           replica_set text    NOT NULL,
           projection  text    NOT NULL,
           version     integer NOT NULL,
           stream      text    NOT NULL,
           slot        integer NOT NULL,
           error       text    NOT NULL,
           replay      boolean NOT NULL DEFAULT false,
           parked_at   timestamptz NOT NULL DEFAULT now(),
           PRIMARY KEY (replica_set, projection, version, stream)))",
      R"(CREATE TABLE $S.parked_events (
           replica_set   text    NOT NULL,
           projection    text    NOT NULL,
           version       integer NOT NULL,
           stream        text    NOT NULL,
           event_version bigint  NOT NULL,
           side_effects  boolean NOT NULL DEFAULT true,
           PRIMARY KEY (replica_set, projection, version, stream, event_version)))",
      "COMMENT ON TABLE $S.checkpoints IS 'How far each slot of a projection is. A commit of an "
      "older generation than stands here fails'",
      "COMMENT ON TABLE $S.parked_streams IS 'Streams with an event that failed for good'",
      "COMMENT ON TABLE $S.parked_events IS 'Their events that wait to be replayed, in order'",
  };
  return kSchema;
}

// Columns missing from tables of earlier versions.
constexpr std::string_view kLaterColumns[] = {
    "ALTER TABLE $S.checkpoints ADD COLUMN IF NOT EXISTS skipped bigint NOT NULL DEFAULT 0, ADD "
    "COLUMN IF NOT EXISTS effects_until bigint NOT NULL DEFAULT -1",
    "ALTER TABLE $S.parked_events ADD COLUMN IF NOT EXISTS side_effects boolean NOT NULL DEFAULT "
    "true"};

struct Statements {
  explicit Statements(const std::string& space) {
    const auto in = [&](std::string_view sql) { return sql::InPgSchema(sql, space); };
    const std::string which =
        "replica_set = $1::text AND projection = $2::text AND version = $3::integer";
    create = {"create",
              in("INSERT INTO $S.checkpoints (replica_set, projection, version, slot, generation, "
                 "position) SELECT $1::text, $2::text, $3::integer, s, 0, 0 FROM "
                 "unnest($4::integer[]) s ORDER BY s ON CONFLICT DO NOTHING")};
    // In slot order, so that concurrent takeovers do not deadlock.
    raise = {"raise",
             in("WITH mine AS (SELECT slot FROM $S.checkpoints WHERE " + which +
                " AND slot = ANY ($4::integer[]) AND generation <= $5::bigint ORDER BY slot FOR "
                "UPDATE), n AS (SELECT count(*) AS n FROM mine) UPDATE $S.checkpoints c SET "
                "generation = $5::bigint FROM mine, n WHERE " +
                which +
                " AND c.slot = mine.slot AND n.n = cardinality($4::integer[]) RETURNING c.slot, "
                "c.generation, c.position, c.handled, c.digest, c.skipped, c.effects_until")};
    // Fails as a whole if any slot is in another generation or at another position. Each slot's
    // values are in arrays at its index: for a join, the planner, without statistics, would scan
    // the table once per slot.
    const auto at_slot = [](int parameter) {
      return "($" + std::to_string(parameter) + "::bigint[])[c.slot - $5::integer + 1]";
    };
    move = {"move",
            in("WITH moved AS (UPDATE $S.checkpoints c SET position = " + at_slot(8) +
               ", handled = c.handled + " + at_slot(9) + ", digest = c.digest # " + at_slot(10) +
               ", skipped = c.skipped + " + at_slot(12) + " WHERE " + which +
               " AND c.slot = ANY ($4::integer[]) AND c.generation = " + at_slot(6) +
               " AND c.position = " + at_slot(7) + " AND c.effects_until = " + at_slot(11) +
               " RETURNING 1), n AS (SELECT count(*) AS n FROM moved) SELECT CASE WHEN n.n = "
               "cardinality($4::integer[]) THEN 0 ELSE ('" +
               std::string(kFenced) + "' || n.n)::integer END FROM n")};
    // The same cast, if fewer rows were found than required.
    const auto all = [](const std::string& found, const std::string& wanted) {
      return "WITH found AS (" + found +
             "), n AS (SELECT count(*) AS n FROM found) SELECT CASE WHEN n.n = cardinality(" +
             wanted + ") THEN 0 ELSE ('" + std::string(kFenced) + "' || n.n)::integer END FROM n";
    };
    are_parked = {"are_parked",
                  in(all("SELECT 1 FROM $S.parked_streams WHERE " + which +
                             " AND stream = ANY ($4::text[]) ORDER BY stream FOR UPDATE",
                         "$4::text[]"))};
    park_streams = {"park_streams",
                    in("INSERT INTO $S.parked_streams (replica_set, projection, version, stream, "
                       "slot, error) SELECT DISTINCT ON (s.stream) $1::text, $2::text, "
                       "$3::integer, s.stream, s.slot, $6::text FROM unnest($4::text[], "
                       "$5::integer[]) s(stream, slot) ORDER BY s.stream ON CONFLICT "
                       "(replica_set, projection, version, stream) DO UPDATE SET error = "
                       "$6::text, replay = false")};
    park_events = {"park_events",
                   in("INSERT INTO $S.parked_events (replica_set, projection, version, stream, "
                      "event_version, side_effects) SELECT $1::text, $2::text, $3::integer, "
                      "e.stream, e.version, e.effects <> 0 FROM unnest($4::text[], $5::bigint[], "
                      "$6::integer[]) e(stream, version, effects) ON CONFLICT DO NOTHING")};
    fail_replay = {
        "fail_replay",
        in(all("UPDATE $S.parked_streams s SET error = $6::text, replay = false FROM "
               "$S.parked_events e WHERE " +
                   Of("s", which) + " AND " + Of("e", which) +
                   " AND e.stream = s.stream AND s.stream = ANY ($4::text[]) AND e.event_version "
                   "= ANY ($5::bigint[]) RETURNING 1",
               "$4::text[]"))};
    free_events = {"free_events",
                   in(all("DELETE FROM $S.parked_events p USING unnest($4::text[], $5::bigint[]) "
                          "e(stream, version) WHERE " +
                              Of("p", which) +
                              " AND p.stream = e.stream AND p.event_version = e.version "
                              "RETURNING 1",
                          "$4::text[]"))};
    free_streams = {"free_streams",
                    in("DELETE FROM $S.parked_streams s WHERE " + Of("s", which) +
                       " AND stream = ANY ($4::text[]) AND NOT EXISTS (SELECT 1 FROM "
                       "$S.parked_events e WHERE " +
                       Of("e", which) + " AND e.stream = s.stream)")};
    slots = {"slots",
             in("SELECT slot, generation, position, handled, digest, skipped, effects_until FROM "
                "$S.checkpoints WHERE " +
                which + " ORDER BY slot"),
             false};
    highest = {"highest",
               in("SELECT coalesce(max(generation), 0) FROM $S.checkpoints WHERE replica_set = "
                  "$1::text"),
               false};
    parked = {"parked",
              in("SELECT s.slot, s.stream, s.error, s.replay::integer, e.event_version, "
                 "e.side_effects::integer FROM $S.parked_streams s JOIN $S.parked_events e USING "
                 "(replica_set, projection, "
                 "version, stream) WHERE " +
                 which + " AND s.slot = ANY ($4::integer[]) ORDER BY s.stream, e.event_version"),
              false};
    ask = {"ask", in("UPDATE $S.parked_streams SET replay = true WHERE " + which +
                     " AND ($4::text = '' OR stream = $4::text)")};
    put = {"put",
           in("INSERT INTO $S.checkpoints AS c (replica_set, projection, version, slot, "
              "generation, position) SELECT $1::text, $2::text, $3::integer, s.slot, 0, s.position "
              "FROM unnest($4::integer[], $5::bigint[]) s(slot, position) ORDER BY s.slot ON "
              "CONFLICT (replica_set, projection, version, slot) DO UPDATE SET position = "
              "excluded.position, handled = CASE WHEN $6::integer = 1 THEN 0 ELSE c.handled END, "
              "digest = CASE WHEN $6::integer = 1 THEN 0 ELSE c.digest END, "
              "skipped = CASE WHEN $6::integer = 1 THEN 0 ELSE c.skipped END")};
    unpark_events = {
        "unpark_events",
        in("DELETE FROM $S.parked_events e USING $S.parked_streams s WHERE " + Of("e", which) +
           " AND " + Of("s", which) + " AND e.stream = s.stream AND s.slot = ANY ($4::integer[])")};
    unpark_streams = {"unpark_streams", in("DELETE FROM $S.parked_streams WHERE " + which +
                                           " AND slot = ANY ($4::integer[])")};
    count_skipped = {"count_skipped", in("UPDATE $S.checkpoints SET skipped = skipped + 1 WHERE " +
                                         which + " AND slot = $4::integer")};
    SetSwap(space);
    for (const char* table : {"checkpoints", "parked_streams", "parked_events"}) {
      forget.push_back({std::string("forget_") + table,
                        in("DELETE FROM $S." + std::string(table) + " WHERE " + which)});
    }
  }

  // Parameters: set, projection, the old version, the new one and, with `slots`, their number.
  // Locks all rows before reading any.
  void SetSwap(const std::string& space) {
    const std::string set = "replica_set = $1::text AND projection = $2::text AND version";
    const std::string old_row =
        "c.replica_set = $1::text AND c.projection = $2::text AND "
        "c.version = $3::integer";
    const std::string new_row =
        "o.replica_set = $1::text AND o.projection = $2::text AND "
        "o.version = $4::integer";
    const std::string always = std::to_string(kEffectsAlways);
    for (const std::string& sql :
         {"INSERT INTO $S.checkpoints (replica_set, projection, version, slot, generation, "
          "position) SELECT replica_set, projection, $3::integer, slot, 0, 0 FROM $S.checkpoints "
          "WHERE " +
              set + " = $4::integer ORDER BY slot ON CONFLICT DO NOTHING",
          "SELECT 1 FROM $S.checkpoints WHERE " + set +
              " IN ($3::integer, $4::integer) ORDER BY version, slot FOR UPDATE",
          "SELECT CASE WHEN count(*) = $5::integer THEN 0 ELSE ('" + std::string(kFenced) +
              "' || count(*))::integer END FROM $S.checkpoints c JOIN $S.checkpoints o ON o.slot = "
              "c.slot AND o.position >= c.position WHERE " +
              old_row + " AND " + new_row + " AND c.version <> o.version",
          "UPDATE $S.checkpoints c SET effects_until = o.position FROM $S.checkpoints o WHERE " +
              old_row + " AND " + new_row + " AND o.slot = c.slot AND o.effects_until <> " + always,
          "UPDATE $S.checkpoints SET effects_until = " + always + " WHERE " + set +
              " = $4::integer AND $3::integer <> $4::integer"}) {
      swap.push_back(
          {"swap" + std::to_string(swap.size()), sql::InPgSchema(sql, space), /*prepared=*/true});
    }
  }

  // The condition qualified with a table alias.
  static std::string Of(const std::string& alias, const std::string& which) {
    std::string text;
    for (size_t at = 0; at < which.size();) {
      for (const std::string_view name : {"replica_set", "projection", "version"}) {
        if (which.compare(at, name.size(), name) != 0) continue;
        text += alias + ".";
        break;
      }
      const size_t next = which.find(' ', at);
      text += which.substr(at, next == std::string::npos ? next : next - at + 1);
      if (next == std::string::npos) break;
      at = next + 1;
    }
    return text;
  }

  sql::PgStatement create, raise, move, are_parked, fail_replay, park_streams, park_events,
      free_events, free_streams, slots, highest, parked, ask, put, unpark_events, unpark_streams,
      count_skipped;
  std::vector<sql::PgStatement> forget, swap;
};

// Arrays and bytes that parameters refer to, kept until the call is made.
struct Call {
  explicit Call(sql::PgStatement what) : statement(std::move(what)) {}
  sql::PgStatement statement;
  std::deque<std::string> texts;
  std::deque<sql::PgArray> arrays;
  sql::PgParams params;

  Call& Of(const Instance& instance) {
    params.Text(texts.emplace_back(instance.set)).Text(texts.emplace_back(instance.projection));
    params.Int32(instance.version);
    return *this;
  }
  template <class Items, class Get>
  Call& Ints(const Items& items, Get get) {
    sql::PgArray& array = arrays.emplace_back(sql::PgArray::Element::kInteger, items.size());
    for (const auto& item : items) array.Int32(get(item));
    params.Text(array.bytes());
    return *this;
  }
  template <class Items, class Get>
  Call& Longs(const Items& items, Get get) {
    sql::PgArray& array = arrays.emplace_back(sql::PgArray::Element::kBigint, items.size());
    for (const auto& item : items) array.Int64(get(item));
    params.Text(array.bytes());
    return *this;
  }
  template <class Items, class Get>
  Call& Texts(const Items& items, Get get) {
    sql::PgArray& array = arrays.emplace_back(sql::PgArray::Element::kText, items.size());
    for (const auto& item : items) array.Text(get(item));
    params.Text(array.bytes());
    return *this;
  }
};

// Statements are queued until the first query or the commit, so that a batch costs one round trip.
class PostgresModelTransaction final : public Transaction {
 public:
  explicit PostgresModelTransaction(store::PostgresPool& pool) : pool_(pool) {}
  ~PostgresModelTransaction() override {
    if (begun_ && lease_) static_cast<void>(sql::RunPlain(**lease_, "ROLLBACK"));
  }

  Status Execute(const std::string& sql, std::vector<SqlValue> params) override {
    return Queue(sql, std::move(params), false);
  }

  Result<std::vector<std::vector<SqlValue>>> Query(const std::string& sql,
                                                   std::vector<SqlValue> params) override {
    MUSTER_TRY(Queue(sql, std::move(params), true));
    if (!begun_) {
      if (idle_limit_.count() > 0) {
        waiting_.emplace_front(
            sql::PgStatement{"", "SET LOCAL idle_in_transaction_session_timeout = " +
                                     std::to_string(idle_limit_.count())});
      }
      waiting_.emplace_front(sql::PgStatement{"", "BEGIN"});
    }
    // Even on failure: then there is a transaction to roll back.
    begun_ = true;
    MUSTER_ASSIGN(const auto results, Send());
    const sql::PgResult& result = results.back();
    std::vector<std::vector<SqlValue>> rows;
    for (int row = 0; row < result.rows(); ++row) {
      std::vector<SqlValue>& values = rows.emplace_back();
      for (int column = 0; column < result.columns(); ++column) {
        if (result.IsNull(row, column)) {
          values.emplace_back();
        } else {
          values.emplace_back(std::string(result.Text(row, column)));
        }
      }
    }
    return rows;
  }

  std::deque<Call>& waiting() { return waiting_; }
  void LimitIdle(milliseconds limit) { idle_limit_ = limit; }

  // Without a query, everything is one implicit transaction.
  Status Commit() {
    if (begun_) waiting_.emplace_back(sql::PgStatement{"", "COMMIT"});
    if (waiting_.empty()) return {};
    auto sent = Send();
    if (!sent) return sent.error();
    begun_ = false;
    return {};
  }

 private:
  Status Queue(const std::string& sql, std::vector<SqlValue> params, bool answers) {
    if (params.size() > sql::PgParams::kMax) {
      return Error{Code::kInvalid, "a statement has more than " +
                                       std::to_string(sql::PgParams::kMax) + " parameters"};
    }
    Call& call = waiting_.emplace_back(sql::PgStatement{NameOf(sql, answers), sql, true, true});
    for (SqlValue& value : params) {
      if (value) {
        call.params.Literal(call.texts.emplace_back(*std::move(value)));
      } else {
        call.params.Null();
      }
    }
    return {};
  }

  // The same text is prepared once per connection.
  static std::string NameOf(const std::string& sql, bool answers) {
    return (answers ? "q" : "x") + Sha256Hex(sql).substr(0, 40);
  }

  Result<std::vector<sql::PgResult>> Send() {
    if (!lease_) {
      MUSTER_ASSIGN(store::PostgresPool::Lease lease, pool_.Take());
      lease_.emplace(std::move(lease));
    }
    std::vector<sql::PgCall> calls;
    calls.reserve(waiting_.size());
    for (const Call& call : waiting_) calls.push_back({call.statement, call.params});
    auto results = (*lease_)->Execute(calls);
    waiting_.clear();
    return results;
  }

  store::PostgresPool& pool_;
  std::optional<store::PostgresPool::Lease> lease_;
  std::deque<Call> waiting_;
  bool begun_ = false;
  milliseconds idle_limit_{0};
};

class PostgresReadModel final : public ReadModel {
 public:
  PostgresReadModel(const std::string& uri, const std::string& space, milliseconds call_timeout)
      : space_(space), statements_(space), pool_(Options(uri, call_timeout), kMaxConnections) {}

  Status Open() {
    MUSTER_ASSIGN(auto connection, pool_.Take());
    MUSTER_TRY(events::SetUpPostgres(*connection, space_, "checkpoints", Schema()));
    return AddColumns(*connection);
  }

  Result<std::vector<SlotState>> TakeOver(const Instance& instance, int64_t generation,
                                          std::span<const int> slots) override {
    const auto self = [](int slot) { return slot; };
    Call create(statements_.create), raise(statements_.raise);
    create.Of(instance).Ints(slots, self);
    raise.Of(instance).Ints(slots, self).params.Int64(generation);
    MUSTER_ASSIGN(auto connection, pool_.Take());
    const sql::PgCall calls[] = {{create.statement, create.params},
                                 {raise.statement, raise.params}};
    MUSTER_ASSIGN(const auto results, connection->Execute(calls));
    std::vector<SlotState> states = StatesFrom(results[1]);
    if (states.size() != slots.size()) {
      return Error{Code::kLeaseLost, "slots of '" + instance.projection +
                                         "' belong to a later generation than " +
                                         std::to_string(generation)};
    }
    return states;
  }

  Result<std::unique_ptr<Transaction>> Begin() override {
    return std::make_unique<PostgresModelTransaction>(pool_);
  }

  void LimitIdle(Transaction& transaction, milliseconds limit) override {
    static_cast<PostgresModelTransaction&>(transaction).LimitIdle(limit);
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
      Call& call = transaction.waiting().emplace_back(statement);
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
    PostgresModelTransaction transaction(pool_);
    AddParked(transaction.waiting(), instance, {.replayed = {event}});
    Call& count = transaction.waiting().emplace_back(statements_.count_skipped);
    count.Of(instance).params.Int32(event.slot);
    Status skipped = transaction.Commit();
    if (!skipped && skipped.error().message.find(kFenced) != std::string::npos) {
      return Error{Code::kNotFound, "the event is not parked any more"};
    }
    return skipped;
  }

  Result<std::vector<SlotState>> Slots(const Instance& instance) override {
    Call call(statements_.slots);
    MUSTER_ASSIGN(const sql::PgResult rows, Run(call.Of(instance)));
    return StatesFrom(rows);
  }

  Result<int64_t> HighestGeneration(const std::string& set) override {
    Call call(statements_.highest);
    call.params.Text(set);
    MUSTER_ASSIGN(const sql::PgResult rows, Run(call));
    return rows.Int64(0, 0);
  }

  Result<std::vector<ParkedStream>> Parked(const Instance& instance,
                                           std::span<const int> slots) override {
    Call call(statements_.parked);
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
    Call call(statements_.ask);
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
  // Only if one is missing: the change waits for all users of the table.
  Status AddColumns(sql::PgConnection& connection) const {
    MUSTER_ASSIGN(
        const sql::PgResult found,
        sql::RunPlain(connection,
                      sql::InPgSchema("SELECT count(*)::integer FROM pg_attribute WHERE NOT "
                                      "attisdropped AND (attrelid, attname) IN "
                                      "(('$S.checkpoints'::regclass, 'skipped'), "
                                      "('$S.checkpoints'::regclass, 'effects_until'), "
                                      "('$S.parked_events'::regclass, 'side_effects'))",
                                      space_),
                      false));
    if (found.Int32(0, 0) == 3) return {};
    for (const std::string_view sql : kLaterColumns) {
      MUSTER_TRY(sql::RunPlain(connection, sql::InPgSchema(sql, space_)));
    }
    return {};
  }

  static sql::PgOptions Options(const std::string& uri, milliseconds call_timeout) {
    sql::PgOptions options;
    options.uri = uri;
    options.call_timeout = call_timeout;
    options.settings = {{"default_transaction_isolation", "read committed"}};
    return options;
  }

  Result<sql::PgResult> Run(const Call& call) {
    MUSTER_ASSIGN(auto connection, pool_.Take());
    return connection->Execute(call.statement, call.params);
  }

  static std::vector<SlotState> StatesFrom(const sql::PgResult& rows) {
    std::vector<SlotState> states;
    for (int row = 0; row < rows.rows(); ++row) {
      states.push_back({rows.Int32(row, 0), rows.Int64(row, 1), rows.Int64(row, 2),
                        rows.Int64(row, 3), rows.Int64(row, 4), rows.Int64(row, 5),
                        rows.Int64(row, 6)});
    }
    return states;
  }

  // First: a fenced-off follower should not even try the rest.
  void AddMoves(std::deque<Call>& calls, const Instance& instance,
                const ReadModelProgress& progress) const {
    if (progress.moves.empty()) return;
    const auto [lowest, highest] =
        std::minmax_element(progress.moves.begin(), progress.moves.end(),
                            [](const SlotMove& a, const SlotMove& b) { return a.slot < b.slot; });
    const int first = lowest->slot;
    const auto by_slot = [&](int64_t SlotMove::*member) {
      std::vector<int64_t> values(static_cast<size_t>(highest->slot - first + 1));
      for (const SlotMove& move : progress.moves) {
        values[static_cast<size_t>(move.slot - first)] = move.*member;
      }
      return values;
    };
    const auto self = [](int64_t value) { return value; };
    // After an explicit BEGIN everything is in one transaction anyway.
    Call& call = calls.emplace_front(statements_.move);
    call.Of(instance).Ints(progress.moves, [](const SlotMove& move) { return move.slot; });
    call.params.Int32(first);
    call.Longs(by_slot(&SlotMove::generation), self)
        .Longs(by_slot(&SlotMove::from), self)
        .Longs(by_slot(&SlotMove::to), self)
        .Longs(by_slot(&SlotMove::handled), self)
        .Longs(by_slot(&SlotMove::digest), self)
        .Longs(by_slot(&SlotMove::effects_until), self)
        .Longs(by_slot(&SlotMove::skipped), self);
  }

  void AddParked(std::deque<Call>& calls, const Instance& instance,
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
      Call& streams = calls.emplace_back(statements_.park_streams);
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
      Call& failed = calls.emplace_back(statements_.fail_replay);
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
  const Statements statements_;
  store::PostgresPool pool_;
};

}  // namespace

Result<std::unique_ptr<ReadModel>> OpenPostgresReadModel(const std::string& uri,
                                                         const std::string& space,
                                                         milliseconds call_timeout) {
  auto model = std::make_unique<PostgresReadModel>(uri, space, call_timeout);
  MUSTER_TRY(model->Open());
  return model;
}

}  // namespace muster::replica
