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

// What the interpreter has to be given before a flow can go on.
enum class Wants {
  kNothing,   // it has ended, see `status`
  kTask,      // the call in `task`
  kCallback,  // somebody who sends the token of `task`
  kTimer,     // that `due` passes
  kChildren,  // the branches or iterations in `children`
};

// A flow is never kUnreadable.
using FlowStatus = ExecutionStatus;

// The status of a name that NameOf gives a flow; none: there is no such status.
std::optional<FlowStatus> FindFlowStatus(std::string_view name);

// A call of a Task, or one that a Map needs to read its items or write its results.
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
  // Of a Map: an item, or a batch of them, for each child; in a store perhaps only some of them.
  Value items = {};
  int64_t items_from = 0;  // the child that the first of these items is for
  bool shared = false;     // of a Parallel: one value for all
  int64_t total = 0;
  int64_t concurrency = 0;  // 0: as many as there are
  int64_t started = 0;
  int64_t failed = 0;
  int64_t tolerated_count = 0;
  double tolerated_percentage = 0;
  // In a store: those that have ended and were accounted for, all below the first number and the
  // ones in the set.
  int64_t settled_below = 0;
  std::set<int64_t> settled = {};

  int64_t open() const { return started - settled_below - static_cast<int64_t>(settled.size()); }
};

// A file of results that a ResultWriter writes, or the manifest that lists them.
struct ResultsFile {
  std::string key;
  std::string body;
  std::string list = {};  // in the manifest: "SUCCEEDED", "FAILED" or "PENDING"; empty: it is that
  int64_t next = 0;       // the child that the next file of the list goes on with; -1: none is left
};

// How far a ResultWriter has come.
struct ResultsProgress {
  Json parameters = {};         // of the call: the bucket
  std::string folder = {};      // what the names of its files begin with
  std::string list = {};        // which is being written: "SUCCEEDED", …; empty: the manifest
  bool only_succeeded = false;  // there is nothing for the other lists
  int64_t next = 0;             // the child that the next file begins with
  Json files = {};              // those that are there, by list
  std::optional<Failure> failure = {};   // what the Map fails with once all is written
  std::optional<ResultsFile> file = {};  // being written; not kept in a store
};

// One sequence of states: an execution, or a branch or iteration of one. It is all that must be
// known to go on with it, anywhere.
struct Flow {
  int machine = 0;      // which machine of the definition
  std::string path;     // of the branch; empty: the execution itself
  std::string state;    // the state it is in, or enters next
  Value input;          // the state's raw input
  Variables variables;  // all that can be read here
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
  std::optional<ChildrenProgress> failed_children;  // what a redrive goes on with
  std::optional<ResultsProgress> results;

  std::optional<int64_t> map_index;  // of an iteration
  Value map_value;

  Value output;     // when it has succeeded
  Failure failure;  // when it has not

  bool ended() const { return status != FlowStatus::kRunning; }
};

}  // namespace muster::states
