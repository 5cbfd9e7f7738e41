#pragma once

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "events/event_rules.h"
#include "muster/env.h"
#include "muster/events.h"
#include "sql/postgres.h"
#include "sql/postgres_pool.h"

namespace muster::events {

// Slots and positions as two arrays for a statement.
struct SlotArrays {
  explicit SlotArrays(std::span<const SlotPosition> from);

  sql::PgArray slots;
  sql::PgArray afters;
};

// A query for position, stream, version, slot, id, type, payload, metadata and time, ordered by
// `order` and limited, that also ends with the event whose payload and metadata reach the number of
// bytes in parameter `bytes`. The last column is the running total. The server does not decompress
// what it leaves out.
std::string Bounded(const std::string& select, const std::string& order, int bytes);

// Queries for events are Bounded, by their last parameter. Payload and metadata are text or bytea.
struct ReadStatements {
  sql::PgStatement last;         // the last position; 0: no events
  sql::PgStatement read_stream;  // stream, after this version, limit, bytes
  sql::PgStatement read_all;     // after, up to, limit, bytes
  sql::PgStatement read_slots;   // slots, after, up to, limit, bytes; the first two as SlotArrays
  sql::PgStatement marks;        // positions; see Marks
};

// A query for position, stream, version and id of the last event at or before each position of an
// array, in its order. `latest` finds one for `p.at`, with its columns so named.
std::string Marks(const std::string& latest);

// Reads an event log on PostgreSQL, by any writer: in pages up to a horizon, the position below
// which no event can appear any more. A known horizon stays valid: while a reader is behind it, no
// newer one is queried.
class PostgresEventReader : public EventLog {
 public:
  int slots() const override { return slots_; }
  Result<std::vector<Event>> ReadStream(std::string_view stream, int64_t after, int limit) override;
  Result<EventPage> ReadAll(int64_t after, int limit) override;
  Result<EventPage> Read(std::span<const SlotPosition> from, int limit) override;
  Result<int64_t> Last() override;
  Result<std::vector<EventMark>> MarksAt(std::span<const int64_t> positions) override;
  void Wait(std::chrono::milliseconds timeout, std::stop_token stop) override;

 protected:
  PostgresEventReader(const std::string& uri, Env& env, const EventLogOptions& options);

  virtual const ReadStatements& statements() const = 0;

  // With what is known of the log's table.
  virtual Error Explained(Error error) const { return error; }

  // A horizon, later than `known_horizon_` if possible: called only if that is not enough.
  virtual Result<int64_t> FindHorizon() = 0;

  // Rows of a page that ends at `end`, and what else is known of the log at that moment.
  struct Rows {
    sql::PgResult events;
    EventMark end;
  };

  // Events of some slots, each after its position, up to the window's end.
  virtual Result<Rows> ReadSlots(const ReadWindow& window, int limit);

  // Runs a query for events up to `end`. kUnavailable: the log ends before a horizon that it had.
  Result<Rows> RunUpTo(int64_t end, const sql::PgStatement& statement, const sql::PgParams& params);

  // For reading; see PostgresPool. kReadOnly: the server is a standby.
  Result<std::vector<sql::PgResult>> Run(std::span<const sql::PgCall> calls);
  Result<sql::PgResult> Run(const sql::PgStatement& statement, const sql::PgParams& params);

  Env& env_;
  sql::PostgresPool pool_;
  const int64_t read_bytes_;
  int slots_ = 0;
  std::atomic<int64_t> known_horizon_ = 0;

 private:
  int RowsFor(int limit) const;
  void Learn(const sql::PgResult& rows);
  void LearnFrom(const Error& error, int asked);
  Result<int64_t> HorizonBeyond(int64_t wanted);
  Result<Rows> ReadIn(const ReadWindow& window, int limit);
  Status Fill(EventPage& page, const Result<Rows>& read, int asked);

  std::atomic<int> rows_ = kMaxEventBatch;  // limit on the events requested per query
};

}  // namespace muster::events
