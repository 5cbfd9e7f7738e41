#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/record_version.h"
#include "muster/store.h"
#include "states/run/interpreter.h"

namespace muster::states {

// Executions and their branches are records of one kind: "NAME", and "NAME/PATH" for a branch.
inline constexpr char kKind[] = "states";
// What does not fit into a record: bodies, items, older history. A part is a JSON string; its
// meaning and version follow from the record that names it.
inline constexpr char kPartKind[] = "states.part";
inline constexpr char kMachineKind[] = "states.machine";
inline constexpr char kCallbackKind[] = "states.callback";
inline constexpr RecordFormat kCallbackFormat{kCallbackKind, 1};

// Records of kKind read at a time: they may be large.
inline constexpr int kScanPage = 100;

// The items of a Map that do not fit into its record: in pieces of some items each, so that one
// piece can be loaded without the others.
struct StoredItems {
  struct Piece {
    int64_t first = 0;  // the index of the child that gets its first item
    int64_t parts = 1;  // more than one if an item is very large
  };
  std::string key = {};  // the prefix of the parts' keys; empty: the items are in the record
  std::vector<Piece> pieces = {};
};

// The record of an execution or branch, decoded.
struct FlowRecord {
  store::Record record;  // as last read or written
  std::string execution;
  std::string machine;  // the key of its definition
  ExecutionInfo info;   // without the input in branches
  Flow flow;
  std::optional<WallTime> deadline = {};    // of the whole execution
  std::optional<WallTime> stop = {};        // when it ended
  std::string parent = {};                  // the key of its parent flow
  bool apart = false;                       // a child of a distributed Map, with its own history
  std::string within = {};                  // the key of the nearest such child around it
  bool cleanup = false;                     // it has ended, its branches perhaps not yet
  std::optional<TaskProgress> cancel = {};  // a call to cancel
  milliseconds poll{0};                     // the current polling interval
  StoredItems items = {};                   // of its Map, if not in the record
  std::vector<std::string> chunks = {};     // the parts of the older history
  std::string events = {};                  // the recent history, as stored
  int64_t inline_events = 0;                // the number of events in it
  int64_t first_event = 0;                  // the id before its first event
  int64_t event_count = 0;                  // of its own
  int64_t branch_events = 0;                // of branches that have ended

  bool is_root() const { return parent.empty(); }
};

// Appends to the history of a record. Earlier events stay text: driving a flow never reads them.
class FlowLog final : public EventLog {
 public:
  explicit FlowLog(FlowRecord& record) : record_(record) {}
  int64_t Add(Event event) override;
  int64_t count() const override { return record_.event_count + record_.branch_events; }

 private:
  FlowRecord& record_;
};

// Encodes and decodes records. What is too large for one record goes into parts, which are written
// before the record that names them and never change.
class FlowCodec {
 public:
  explicit FlowCodec(store::Store& store) : store_(store) {}

  // The new body of a record, and the parts to write before it.
  struct Encoded {
    std::string body;
    std::vector<store::Change> parts;
  };
  Encoded Encode(FlowRecord& record) const;

  Result<FlowRecord> Decode(store::Record record) const;

  // Loads the item for a child, and perhaps some that follow, into the flow.
  Status LoadItems(FlowRecord& record, int64_t index) const;

  // All events of a record, older ones included.
  Result<std::vector<Event>> LoadEvents(const FlowRecord& record) const;

  // A definition by its key, and the changes that store one.
  Result<std::string> LoadMachine(const std::string& key) const;
  static std::vector<store::Change> MachineChanges(const std::string& key, const std::string& text);

 private:
  Result<std::string> LoadParts(const Json& keys) const;

  store::Store& store_;
};

std::string KeyOf(const std::string& execution, const std::string& path);

// Whether the flow of a body is running, without parsing the body.
bool SaysRunning(std::string_view body);

}  // namespace muster::states
