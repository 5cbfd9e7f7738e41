#include "events/postgres_event_reader.h"

#include <algorithm>

#include "core/poll.h"
#include "core/sha256.h"
#include "core/utf8.h"

namespace muster::events {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxConnections = 64;
constexpr Backoff::Pauses kPolls{.first = milliseconds(2), .longest = milliseconds(60)};

sql::PgOptions SessionOptions(const std::string& uri, milliseconds call_timeout) {
  sql::PgOptions options;
  options.uri = uri;
  options.call_timeout = call_timeout;
  // Every query follows an index whose best plan does not depend on its parameters; statistics of a
  // growing log could only mislead the planner.
  options.settings = {{"plan_cache_mode", "force_generic_plan"},
                      {"enable_seqscan", "off"},
                      {"enable_hashjoin", "off"},
                      {"enable_mergejoin", "off"},
                      {"enable_material", "off"},
                      {"jit", "off"},
                      // Times without a zone, written by others, are read as UTC.
                      {"timezone", "UTC"},
                      {"default_transaction_isolation", "read committed"}};
  return options;
}

constexpr int64_t kBytea = 17;
constexpr int kTotal = 10;  // the last column of Bounded

// Bytes that are not text are returned as the server prints them: \\x and hex digits.
std::string ContentOf(const sql::PgResult& rows, int row, int column) {
  const std::string_view content = rows.Text(row, column);
  const bool text =
      rows.ColumnType(column) != kBytea ||
      (ValidUtf8Prefix(content) == content.size() && content.find('\0') == std::string_view::npos);
  return text ? std::string(content) : "\\x" + Hex(content);
}

std::vector<Event> EventsFrom(const sql::PgResult& rows) {
  std::vector<Event> events(static_cast<size_t>(rows.rows()));
  for (int row = 0; row < rows.rows(); ++row) {
    Event& event = events[static_cast<size_t>(row)];
    event.position = rows.Int64(row, 0);
    event.stream = rows.Text(row, 1);
    event.version = rows.Int64(row, 2);
    event.slot = rows.Int32(row, 3);
    event.id = rows.Text(row, 4);
    event.type = rows.Text(row, 5);
    event.payload = ContentOf(rows, row, 6);
    event.metadata = ContentOf(rows, row, 7);
    event.time = rows.Time(row, 8);
  }
  return events;
}

EventMark MarkIn(const sql::PgResult& rows, int row) {
  Event event;
  event.position = rows.Int64(row, 0);
  event.stream = rows.Text(row, 1);
  event.version = rows.Int64(row, 2);
  event.id = rows.Text(row, 3);
  return event.position == 0 ? EventMark{} : MarkOf(event);
}

bool AreAtOnePosition(std::span<const SlotPosition> slots) {
  return std::all_of(slots.begin(), slots.end(), [&](const SlotPosition& slot) {
    return slot.position == slots.front().position;
  });
}

}  // namespace

std::string Bounded(const std::string& select, const std::string& order, int bytes) {
  const std::string size = "octet_length(w.payload) + octet_length(w.metadata)";
  return "SELECT q.* FROM (SELECT w.*, " + size + " AS bytes, sum(" + size + ") OVER (ORDER BY w." +
         order + " ROWS UNBOUNDED PRECEDING) AS total FROM (" + select +
         ") w) q WHERE q.total - q.bytes < $" + std::to_string(bytes) + "::bigint ORDER BY q." +
         order;
}

std::string Marks(const std::string& latest) {
  return "SELECT coalesce(m.position, 0), coalesce(m.stream, ''), coalesce(m.version, 0), "
         "coalesce(m.id, '') FROM unnest($1::bigint[]) WITH ORDINALITY p(at, ord) LEFT JOIN "
         "LATERAL (" +
         latest + ") m ON true ORDER BY p.ord";
}

SlotArrays::SlotArrays(std::span<const SlotPosition> from)
    : slots(sql::PgArray::Element::kInteger, from.size()),
      afters(sql::PgArray::Element::kBigint, from.size()) {
  for (const SlotPosition& slot : from) {
    slots.Int32(slot.slot);
    afters.Int64(slot.position);
  }
}

PostgresEventReader::PostgresEventReader(const std::string& uri, Env& env,
                                         const EventLogOptions& options)
    : env_(env),
      pool_(SessionOptions(uri, options.call_timeout), kMaxConnections),
      read_bytes_(static_cast<int64_t>(std::min<size_t>(options.read_bytes, INT64_MAX))) {}

Result<std::vector<Event>> PostgresEventReader::ReadStream(std::string_view stream, int64_t after,
                                                           int limit) {
  MUSTER_TRY(CheckStreamRead(after, limit));
  const int asked = RowsFor(limit);
  auto rows = Run(statements().read_stream,
                  sql::PgParams().Text(stream).Int64(after).Int64(asked).Int64(read_bytes_));
  if (!rows) {
    LearnFrom(rows.error(), asked);
    return std::move(rows).error();
  }
  Learn(*rows);
  return EventsFrom(*rows);
}

Result<EventPage> PostgresEventReader::ReadAll(int64_t after, int limit) {
  MUSTER_TRY(CheckRead(after, limit));
  MUSTER_ASSIGN(const int64_t horizon, HorizonBeyond(after + limit));
  EventPage page{{}, std::max(after, horizon)};
  const int asked = RowsFor(limit);
  sql::PgParams params;
  params.Int64(after).Int64(horizon).Int64(asked).Int64(read_bytes_);
  MUSTER_TRY(Fill(page, RunUpTo(horizon, statements().read_all, params), asked));
  return page;
}

Result<EventPage> PostgresEventReader::Read(std::span<const SlotPosition> from, int limit) {
  MUSTER_TRY(CheckSlots(from, slots_, limit));
  EventPage page;
  for (int widen = 0; widen < kMaxWindows; ++widen) {
    const int64_t wanted = NextWindow(from, slots_, limit, INT64_MAX, widen).end;
    MUSTER_ASSIGN(const int64_t horizon, HorizonBeyond(wanted));
    const ReadWindow window = NextWindow(from, slots_, limit, horizon, widen);
    page.read_to = window.end;
    if (window.slots.empty()) break;
    const int asked = RowsFor(limit);
    MUSTER_TRY(Fill(page, ReadIn(window, asked), asked));
    if (!page.events.empty() || window.end == horizon) break;
  }
  return page;
}

Result<int64_t> PostgresEventReader::Last() {
  MUSTER_ASSIGN(const sql::PgResult last, Run(statements().last, sql::PgParams()));
  return last.Int64(0, 0);
}

Result<std::vector<EventMark>> PostgresEventReader::MarksAt(std::span<const int64_t> positions) {
  sql::PgArray asked(sql::PgArray::Element::kBigint, positions.size());
  for (const int64_t position : positions) asked.Int64(position);
  MUSTER_ASSIGN(const sql::PgResult rows,
                Run(statements().marks, sql::PgParams().Text(asked.bytes())));
  std::vector<EventMark> marks;
  for (int row = 0; row < rows.rows(); ++row) marks.push_back(MarkIn(rows, row));
  return marks;
}

// Rows the server must print but then drops cost time: request about twice as many events as would
// have fit the last page.
int PostgresEventReader::RowsFor(int limit) const { return std::min(limit, rows_.load()); }

// The response may have been too large.
void PostgresEventReader::LearnFrom(const Error& error, int asked) {
  if (error.code == Code::kUnavailable) rows_ = std::max(1, asked / 8);
}

void PostgresEventReader::Learn(const sql::PgResult& rows) {
  if (rows.rows() == 0) return;
  const int64_t total = std::max<int64_t>(1, rows.Int64(rows.rows() - 1, kTotal));
  const int64_t fit = read_bytes_ / std::max<int64_t>(1, total / rows.rows());
  rows_ = static_cast<int>(
      std::min<int64_t>(kMaxEventBatch, 2 * std::min<int64_t>(fit, kMaxEventBatch) + 1));
}

// A page that is full, in events or bytes, was read only up to its last event.
Status PostgresEventReader::Fill(EventPage& page, const Result<Rows>& read, int asked) {
  if (!read) {
    LearnFrom(read.error(), asked);
    return read.error();
  }
  const sql::PgResult& rows = read->events;
  Learn(rows);
  page.end = read->end;
  page.events = EventsFrom(rows);
  if (page.events.empty()) return {};
  const auto same = [](const Event& a, const Event& b) { return a.position == b.position; };
  const auto twice = std::adjacent_find(page.events.begin(), page.events.end(), same);
  if (twice != page.events.end()) {
    return Error{Code::kCorrupt,
                 "two events are at position " + std::to_string(twice->position) +
                     ": a reader that continues from there would skip one",
                 "positions must be unique"};
  }
  const bool full = rows.rows() == asked || rows.Int64(rows.rows() - 1, kTotal) >= read_bytes_;
  if (full) {
    page.read_to = page.events.back().position;
    page.end = MarkOf(page.events.back());
  }
  return {};
}

Result<PostgresEventReader::Rows> PostgresEventReader::RunUpTo(int64_t end,
                                                               const sql::PgStatement& statement,
                                                               const sql::PgParams& params) {
  sql::PgArray ends(sql::PgArray::Element::kBigint, 1);
  ends.Int64(end);
  sql::PgParams none, at;
  at.Text(ends.bytes());
  const sql::PgCall calls[] = {
      {statement, params}, {statements().marks, at}, {statements().last, none}};
  MUSTER_ASSIGN(auto results, Run(calls));
  // A log that was restored: the horizon is of events that are gone, and others may still come.
  const int64_t last = results[2].Int64(0, 0);
  if (KeepsEvents() && last < end) {
    known_horizon_ = 0;
    return Error{Code::kUnavailable, "the event log ends at position " + std::to_string(last) +
                                         ", before what was there already"};
  }
  return Rows{std::move(results[0]), MarkIn(results[1], 0)};
}

Result<PostgresEventReader::Rows> PostgresEventReader::ReadIn(const ReadWindow& window, int limit) {
  sql::PgParams params;
  // The owner of all slots reads the log sequentially instead of slot by slot.
  if (window.slots.size() == static_cast<size_t>(slots_) && AreAtOnePosition(window.slots)) {
    params.Int64(window.slots.front().position).Int64(window.end).Int64(limit).Int64(read_bytes_);
    return RunUpTo(window.end, statements().read_all, params);
  }
  return ReadSlots(window, limit);
}

Result<PostgresEventReader::Rows> PostgresEventReader::ReadSlots(const ReadWindow& window,
                                                                 int limit) {
  sql::PgParams params;
  const SlotArrays arrays(window.slots);
  params.Text(arrays.slots.bytes()).Text(arrays.afters.bytes()).Int64(window.end);
  params.Int64(limit).Int64(read_bytes_);
  return RunUpTo(window.end, statements().read_slots, params);
}

// Polls the end of an index, which is always cached. A notification per append would halve the
// commit rate.
void PostgresEventReader::Wait(milliseconds timeout, std::stop_token stop) {
  const int64_t seen = known_horizon_.load();
  const auto look = [&] {
    const auto last = Run(statements().last, sql::PgParams());
    if (!last || last->Int64(0, 0) <= seen) return false;
    // The new events may not be settled yet: returning at once would make the caller spin.
    env_.Sleep(kPolls.first, stop);
    return true;
  };
  PollUntil(look, env_, kPolls, timeout, stop);
}

// A standby shows events but not the locks that say which are still to come: a reader there would
// lose late commits. Checked with every call, since a new connection may lead elsewhere, and first:
// a primary stays one as long as the connection lives.
Result<std::vector<sql::PgResult>> PostgresEventReader::Run(std::span<const sql::PgCall> calls) {
  static const sql::PgStatement kStandby{"standby", "SELECT pg_is_in_recovery()::integer", false};
  const sql::PgParams none{};
  std::vector<sql::PgCall> checked{{kStandby, none}};
  for (const sql::PgCall& call : calls) checked.push_back(call);
  auto ran = pool_.Run(checked, env_);
  if (!ran) return Explained(std::move(ran).error());
  std::vector<sql::PgResult> results = *std::move(ran);
  if (results.front().Int32(0, 0) != 0) {
    return Error{Code::kReadOnly,
                 "the event log's PostgreSQL server is a standby, where events that commit late "
                 "would be missed",
                 "connect to the primary; with several hosts in the URL, add "
                 "target_session_attrs=primary"};
  }
  results.erase(results.begin());
  return results;
}

Result<sql::PgResult> PostgresEventReader::Run(const sql::PgStatement& statement,
                                               const sql::PgParams& params) {
  const sql::PgCall call{statement, params};
  MUSTER_ASSIGN(auto results, Run({&call, 1}));
  return std::move(results.front());
}

Result<int64_t> PostgresEventReader::HorizonBeyond(int64_t wanted) {
  int64_t known = known_horizon_.load();
  if (known >= wanted) return known;
  MUSTER_ASSIGN(const int64_t horizon, FindHorizon());
  while (known < horizon && !known_horizon_.compare_exchange_weak(known, horizon)) {
  }
  return std::max(known, horizon);
}

}  // namespace muster::events
