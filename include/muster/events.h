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

namespace muster::events {

// The limits of every event log; beyond them a call fails with kInvalid and nothing is applied.
inline constexpr size_t kMaxStreamBytes = 500;
inline constexpr size_t kMaxEventTypeBytes = 200;
inline constexpr size_t kMaxEventBytes = 8 * 1024 * 1024;      // payload and metadata together
inline constexpr int kMaxEventBatch = 10'000;                  // events of one Append or one read
inline constexpr size_t kDefaultReadBytes = 32 * 1024 * 1024;  // of one read
inline constexpr int kDefaultSlots = 128;
inline constexpr int kMaxSlots = 1024;

// Expected versions of a stream, besides a number: 0 means that the stream must not exist yet.
inline constexpr int64_t kAnyVersion = -1;

struct NewEvent {
  std::string type;
  std::string payload = "{}";  // UTF-8, kept byte for byte; JSON if projections look into it
  std::string metadata = "{}";
  std::string id = {};  // distinguishes a repeat from a new event; empty: generated
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

// How far the events of a slot are known.
struct SlotPosition {
  int slot = 0;
  int64_t position = 0;

  bool operator==(const SlotPosition&) const = default;
};

// Which event a reader has seen at a position. Another event in its place means another log: one
// that was restored from a backup and has grown again, say.
struct EventMark {
  int64_t position = 0;  // 0: no event
  int64_t fingerprint = 0;

  bool operator==(const EventMark&) const = default;
};
MUSTER_EXPORT EventMark MarkOf(const Event& event);

struct EventPage {
  std::vector<Event> events = {};  // in global order
  int64_t read_to = 0;             // nothing requested is missing up to here, now or later
  // The log's last event at or before `read_to`, read together with the page: identifies the log.
  // Position 0: no such event, or a log that does not support this.
  EventMark end = {};
};

// What a slot has after a position.
struct SlotLag {
  int slot = 0;
  int64_t events = 0;
  std::optional<WallTime> oldest = {};  // time of the first of them
  bool estimated = false;               // from positions: too many to count
};

// An append-only log of events in streams, with a total order that readers can trust: an event that
// commits late is never skipped, and one that was rolled back delays readers no longer than its
// transaction lived.
//
// Every stream belongs to one of a fixed number of slots, by a hash of its name, so that readers
// can share the log without reading each other's part. The number is chosen when the log is created
// and never changes.
//
// Reads are bounded in events and bytes (EventLogOptions::read_bytes): they end with the event
// whose payload and metadata reach the limit, so there may be more even if fewer were returned than
// requested.
//
// Thread-safe. Calls block, for seconds at most.
class EventLog {
 public:
  virtual ~EventLog() = default;

  virtual int slots() const = 0;

  // Appends to streams atomically and in the order given, which is position order; returns the new
  // version of each stream. A stream may occur several times: its expected version is the one it
  // has by then. kConflict: a version does not match, nothing was appended. kUnknownOutcome: read
  // the stream again and look for the ids. With kAnyVersion a repeat may append twice. kPermission:
  // the log is not ours to write.
  virtual Result<std::vector<int64_t>> Append(std::span<const StreamAppend> appends) = 0;

  // Events of one stream after a version, in order. -1 is before the first event even if another
  // library counts from 0.
  virtual Result<std::vector<Event>> ReadStream(std::string_view stream, int64_t after,
                                                int limit) = 0;

  // Events of all streams after a position, in global order.
  virtual Result<EventPage> ReadAll(int64_t after, int limit) = 0;

  // Events of some slots, each after its own position, in global order. The page may end before its
  // limit if slots are far apart; `read_to` still advances, so asking again from there makes
  // progress. A slot whose position is beyond `read_to` was left out.
  virtual Result<EventPage> Read(std::span<const SlotPosition> from, int limit) = 0;

  // The position of the last visible event; 0: none. Earlier ones may still appear.
  virtual Result<int64_t> Last() = 0;

  // For each position, the mark of the last event at or before it.
  virtual Result<std::vector<EventMark>> MarksAt(std::span<const int64_t> positions) = 0;

  // Whether events stay in the log once appended. Other libraries may delete some from their
  // tables.
  virtual bool KeepsEvents() const { return true; }

  // What lies after each position; counted if there is little, otherwise estimated, so that the
  // cost stays about the same.
  virtual Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) = 0;

  // Returns when something may have been appended, after `timeout`, or on a stop request. A hint:
  // it may be late or spurious.
  virtual void Wait(std::chrono::milliseconds timeout, std::stop_token stop) = 0;
};

// The slot of a stream in a log with that many slots.
MUSTER_EXPORT int SlotOf(std::string_view stream, int slots);

// Columns of a table written by another library, by name. A stream may be spread over several
// columns (type and id of an aggregate): their texts are joined with '/'.
struct EventTable {
  std::string table;  // "events" or "schema.events"
  std::string position = "global_position";
  std::vector<std::string> stream = {"aggregate_type", "aggregate_id"};
  std::string version = "aggregate_version";
  std::string id = "event_id";
  std::string type = "event_type";
  // Of any type; a bytea is read as UTF-8 text, or as \x… if it is not. NULL is read as null, and
  // as {} in the metadata.
  std::string payload = "payload";
  std::string metadata = "metadata";  // empty: none
  std::string time = "created_at";    // empty: none; without a zone it is UTC
};

struct EventLogOptions {
  int slots = 0;                                   // 0: the log's own, kDefaultSlots for a new one
  size_t read_bytes = kDefaultReadBytes;           // per read; at least 1
  std::chrono::milliseconds call_timeout{10'000};  // per server call
  bool create = true;                              // SQLite only: create a missing file
  // PostgreSQL only: read this existing table instead of our own. Its writers must draw an event's
  // position, greater than 0, in the INSERT itself (a serial or identity column does).
  std::optional<EventTable> table = {};
};

// Opens a log by the URL of its database, creating it if possible; URLs are as for OpenStore.
// kIncompatible: it has a different number of slots than requested. `env` must outlive the log.
MUSTER_EXPORT Result<std::unique_ptr<EventLog>> OpenEventLog(const std::string& url,
                                                             const EventLogOptions& options,
                                                             Env& env);

}  // namespace muster::events
