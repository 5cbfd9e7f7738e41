#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/store.h"
#include "states/run/interpreter.h"

namespace muster::states {

// Executions and their branches are records of one kind: "NAME", and "NAME/PATH" for a branch.
inline constexpr char kKind[] = "states";
// What does not fit into a record: bodies, items, older history. A part is a JSON string, which the
// record that names it gives a meaning and a version.
inline constexpr char kPartKind[] = "states.part";
inline constexpr char kMachineKind[] = "states.machine";
inline constexpr char kCallbackKind[] = "states.callback";
inline constexpr int64_t kCallbackVersion = 1;

// Where the items of a Map are that are too many for its record: pieces of some items each, so that
// those that are wanted can be had without the others.
struct StoredItems {
  struct Piece {
    int64_t first = 0;  // the child that its first item is for
    int64_t parts = 1;  // how many parts it is in: more than one if an item is very large
  };
  std::string key = {};  // what the keys of the parts begin with; empty: they are in the record
  std::vector<Piece> pieces = {};
};

// What the record of an execution or branch says.
struct FlowRecord {
  store::Record record;  // as it is stored, to the best of our knowledge
  std::string execution;
  std::string machine;  // the key of its definition
  ExecutionInfo info;   // its input only of an execution itself
  Flow flow;
  std::optional<WallTime> deadline = {};    // of the whole execution
  std::optional<WallTime> stop = {};        // when it ended
  std::string parent = {};                  // the key of the flow that it is a branch of
  bool apart = false;                       // a child of a distributed Map, with its own history
  std::string within = {};                  // the key of the nearest such child that it is part of
  bool cleanup = false;                     // ended; its branches may not know yet
  std::optional<TaskProgress> cancel = {};  // a call to be cancelled
  milliseconds poll{0};                     // since when it waits for branches in vain
  StoredItems items = {};                   // where the items of its Map are, if not here
  std::vector<std::string> chunks = {};     // where the older history is
  std::string events = {};                  // the younger history, as it is stored
  int64_t inline_events = 0;                // how many events that is
  int64_t first_event = 0;                  // the id before its first event
  int64_t event_count = 0;                  // events of its own
  int64_t branch_events = 0;                // of branches that have ended

  bool is_root() const { return parent.empty(); }
};

// Appends to the history of a record. What is there already stays text: whoever drives a flow never
// reads it.
class FlowLog final : public EventLog {
 public:
  explicit FlowLog(FlowRecord& record) : record_(record) {}
  int64_t Add(Event event) override;
  int64_t count() const override { return record_.event_count + record_.branch_events; }

 private:
  FlowRecord& record_;
};

// Turns records into bodies and back. What is too large for one record goes into parts, which are
// written before the record that names them and are never changed.
class FlowCodec {
 public:
  explicit FlowCodec(store::Store& store) : store_(store) {}

  // The new body of a record, and the parts that must be there before it.
  struct Encoded {
    std::string body;
    std::vector<store::Change> parts;
  };
  Encoded Encode(FlowRecord& record) const;

  Result<FlowRecord> Decode(store::Record record) const;

  // The item for a child, and perhaps some that follow, into the flow.
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

// Whether the body of a record says that its flow runs, without reading the rest of it.
bool SaysRunning(std::string_view body);

}  // namespace muster::states
