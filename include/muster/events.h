#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"

namespace muster {

// The limits of every event log; beyond them a call fails with kInvalid and nothing is applied.
inline constexpr size_t kMaxStreamBytes = 500;
inline constexpr size_t kMaxEventTypeBytes = 200;
inline constexpr size_t kMaxEventBytes = 8 * 1024 * 1024;      // payload and metadata together
inline constexpr int kMaxEventBatch = 10'000;                  // events of one Append or one read
inline constexpr size_t kDefaultReadBytes = 32 * 1024 * 1024;  // of one read
inline constexpr int kDefaultSlots = 128;
inline constexpr int kMaxSlots = 1024;

// Expected versions of a stream, beside a number: 0 says that the stream must not exist yet.
inline constexpr int64_t kAnyVersion = -1;

struct NewEvent {
  std::string type;
  std::string payload = "{}";  // UTF-8, kept byte for byte; JSON where projections look into it
  std::string metadata = "{}";
  std::string id = {};  // tells a repeat from a new event; empty: one is drawn
};

struct Event {
  int64_t position = 0;  // in the whole log: grows, with gaps
  std::string stream;
  int64_t version = 0;  // within the stream: 1, 2, 3, …
  int slot = 0;         // of the stream; see SlotOf
  std::string id;
  std::string type;
  std::string payload;
  std::string metadata;
  WallTime time{};

  bool operator==(const Event&) const = default;
};

struct StreamAppend {
  std::string stream;
  int64_t expected = kAnyVersion;  // the version the stream must have
  std::vector<NewEvent> events;
};

// Up to where the events of a slot are known.
struct SlotPosition {
  int slot = 0;
  int64_t position = 0;

  bool operator==(const SlotPosition&) const = default;
};

struct EventPage {
  std::vector<Event> events = {};  // in global order
  int64_t read_to = 0;  // nothing of what was asked for is missing up to here, now or later
};

// What a slot has beyond a position.
struct SlotLag {
  int slot = 0;
  int64_t events = 0;
  std::optional<WallTime> oldest = {};  // of the first of them
  bool estimated = false;               // by positions: there are too many to count
};

// An append-only log of events in streams, with one order over all of them that readers can trust:
// an event that commits late is never skipped, and one that was rolled back is never waited for
// longer than its transaction lived.
//
// Every stream belongs to one of a fixed number of slots, by a hash of its name, so that readers
// can share the log without reading each other's part. The number is chosen when the log is
// created and never changes.
//
// Reads are bounded in events and in bytes (EventLogOptions::read_bytes): they end with the event
// whose payload and metadata reach that, so there may be more also where fewer came than asked for.
//
// Thread-safe. Calls block, for seconds at most.
class EventLog {
 public:
  virtual ~EventLog() = default;

  virtual int slots() const = 0;

  // Appends to streams, all or nothing and in the order given, which is that of the positions; the
  // answer is the version of each stream then. A stream may come several times: it is expected to
  // have the version it has by then. kConflict: one has another, nothing was appended.
  // kUnknownOutcome: read the stream again; the events are there or not by their ids. With
  // kAnyVersion a repeat may append twice. A log that is not ours to write answers kPermission.
  virtual Result<std::vector<int64_t>> Append(std::span<const StreamAppend> appends) = 0;

  // Events of one stream after a version, in order. -1 is before the first event also where
  // another library counts from 0.
  virtual Result<std::vector<Event>> ReadStream(std::string_view stream, int64_t after,
                                                int limit) = 0;

  // Events of all streams after a position, in global order.
  virtual Result<EventPage> ReadAll(int64_t after, int limit) = 0;

  // Events of some slots, each after a position of its own, in global order. The page may end
  // before its limit where slots are far apart; `read_to` then still grows, so that asking again
  // from there gets on. A slot whose position is beyond `read_to` was left out.
  virtual Result<EventPage> Read(std::span<const SlotPosition> from, int limit) = 0;

  // The position of the last event that can be seen; 0: there is none. Earlier ones may still come.
  virtual Result<int64_t> Last() = 0;

  // What lies beyond each position; counted where that is little, else estimated, so that it costs
  // about the same however much there is.
  virtual Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) = 0;

  // Returns when something may have been appended, after `timeout`, or when a stop is requested.
  // A hint: it may be late or for nothing.
  virtual void Wait(std::chrono::milliseconds timeout, std::stop_token stop) = 0;
};

// The slot of a stream in a log with that many slots.
int SlotOf(std::string_view stream, int slots);

// Columns of a table that another library writes, by name. A stream may be spread over several
// columns (type and id of an aggregate): their texts are joined with '/'.
struct EventTable {
  std::string table;  // "events" or "schema.events"
  std::string position = "global_position";
  std::vector<std::string> stream = {"aggregate_type", "aggregate_id"};
  std::string version = "aggregate_version";
  std::string id = "event_id";
  std::string type = "event_type";
  // Of any type; a bytea is taken for UTF-8 text, and written \x… where it is none. NULL is read
  // as null, and as {} in the metadata.
  std::string payload = "payload";
  std::string metadata = "metadata";  // empty: there is none
  std::string time = "created_at";    // empty: there is none; without a zone it is UTC
};

struct EventLogOptions {
  int slots = 0;                          // 0: as many as the log has, kDefaultSlots in a new one
  size_t read_bytes = kDefaultReadBytes;  // beyond them a read goes no further; at least 1
  std::chrono::milliseconds call_timeout{10'000};  // of one call to a server
  bool create = true;                              // SQLite only: a file that is not there
  // PostgreSQL only: read this table as it is instead of our own. Its writers must draw an event's
  // position, greater than 0, in the INSERT itself (a serial or identity column does).
  std::optional<EventTable> table = {};
};

// Opens a log by the URL of its database, creating it where that is possible; the forms are those
// of OpenStore. kIncompatible: it has another number of slots than was asked for. `env` must
// outlive the log.
Result<std::unique_ptr<EventLog>> OpenEventLog(const std::string& url, Env& env,
                                               const EventLogOptions& options = {});

}  // namespace muster
