#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/states.h"
#include "states/run/failure.h"
#include "states/run/scope.h"

namespace muster::states {

// What a flow needs before the interpreter can continue it.
enum class Wants {
  kNothing,   // it has ended, see `status`
  kTask,      // the call in `task`
  kCallback,  // an answer for the token of `task`
  kTimer,     // the time `due`
  kChildren,  // the branches or iterations in `children`
};

// A flow is never kUnreadable.
using FlowStatus = ExecutionStatus;

// The status with this name, as NameOf gives it. None: no status of a flow.
std::optional<FlowStatus> FindFlowStatus(std::string_view name);

// A call of a Task, or one by which a Map reads its items or writes its results.
struct TaskProgress {
  enum class Purpose { kTask, kReadItems, kWriteResults };
  Purpose purpose = Purpose::kTask;
  std::string resource = {};
  Value input = {};
  Value credentials = {};  // null: none
  std::string token = {};
  std::optional<WallTime> deadline = {};
  std::optional<int64_t> heartbeat_s = {};
  Json resume = {};  // of a call that is pending
  bool pending = false;
};

// The branches of a Parallel or the iterations of a Map.
struct ChildrenProgress {
  // Of a Map: an item, or a batch of them, for each child; on a store, perhaps only some of them.
  Value items = {};
  int64_t items_from = 0;  // the index of the child that gets the first of these items
  bool shared = false;     // of a Parallel: one value for all
  int64_t total = 0;
  int64_t concurrency = 0;  // 0: unlimited
  int64_t started = 0;
  int64_t failed = 0;
  int64_t tolerated_count = 0;
  double tolerated_percentage = 0;
  // On a store: the children that have ended and were accounted for are all below the first number,
  // and those in the set.
  int64_t settled_below = 0;
  std::set<int64_t> settled = {};

  int64_t open() const { return started - settled_below - static_cast<int64_t>(settled.size()); }
};

// A file of results that a ResultWriter writes, or the manifest that lists them.
struct ResultsFile {
  std::string key;
  std::string body;
  std::string list = {};  // "SUCCEEDED", "FAILED" or "PENDING"; empty: the manifest itself
  int64_t next = 0;       // the first child of the list's next file; -1: none is left
};

// The progress of a ResultWriter.
struct ResultsProgress {
  Json parameters = {};                  // of the call: the bucket
  std::string folder = {};               // the prefix of its files' names
  std::string list = {};                 // being written: "SUCCEEDED", …; empty: the manifest
  bool only_succeeded = false;           // the other lists are empty
  int64_t next = 0;                      // the first child of the next file
  Json files = {};                       // written so far, by list
  std::optional<Failure> failure = {};   // of the Map, once all is written
  std::optional<ResultsFile> file = {};  // being written; not stored
};

// One sequence of states: an execution, or a branch or iteration of one. It holds everything that
// any process needs to continue it.
struct Flow {
  int machine = 0;      // which machine of the definition
  std::string path;     // of the branch; empty: the execution itself
  std::string state;    // the state it is in, or enters next
  Value input;          // the state's raw input
  Variables variables;  // all that are visible here
  FlowStatus status = FlowStatus::kRunning;
  Wants wants = Wants::kNothing;

  bool inside = false;  // the state was entered
  int64_t entry = 0;    // how many states were entered
  int64_t entered_event = 0;
  int64_t last_event = 0;
  WallTime entered_time{};
  int64_t retry_count = 0;
  std::vector<int64_t> retrier_counts;
  bool backing_off = false;  // the timer is a retrier's

  std::optional<WallTime> due;
  std::optional<TaskProgress> task;
  std::optional<ChildrenProgress> children;
  std::optional<ChildrenProgress> failed_children;  // where a redrive continues
  std::optional<ResultsProgress> results;

  std::optional<int64_t> map_index;  // of an iteration
  Value map_value;

  Value output;     // when it has succeeded
  Failure failure;  // when it has not

  bool ended() const { return status != FlowStatus::kRunning; }
};

}  // namespace muster::states
