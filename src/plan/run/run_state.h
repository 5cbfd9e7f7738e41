#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/run_status.h"
#include "muster/env.h"

namespace muster::plan {

// One attempt of a run.
struct Attempt {
  int64_t number = 1;
  std::string execution;                // its state machine's
  std::vector<std::string> again = {};  // tasks that it repeated although they had succeeded
};

// A migration as stored.
struct RunState {
  // Its key in the store and for commands: the input migrationId, with a suffix if a run of another
  // tenant or environment has the same.
  std::string id;
  std::string plan;
  std::string path;         // of the plan's file, absolute
  std::string folder = {};  // where it was started: relative paths are relative to it
  std::string hash;
  std::string incarnation = {};   // unique, unlike its id
  bool unmarked_staging = false;  // staged by an older version, without the run's name
  std::string profile;
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> variables = {};  // that did not come from the file
  int64_t epoch = 0;  // of the record's lease: Drive drives it only under this claim
  int64_t attempt = 1;
  std::string execution;               // its state machine's, of this attempt
  std::vector<Attempt> attempts = {};  // the latest 100, this one last
  RunStatus status = RunStatus::kInProgress;
  std::string error;
  std::string cause;
  std::string output;                        // JSON text, once it is completed
  WallTime start{};                          // of this attempt
  std::optional<WallTime> first_start = {};  // of the first one; none: an older version began it
  std::optional<WallTime> stop = {};
  // Tasks that this attempt repeats although they had succeeded; set by Resume only.
  std::vector<std::string> invalidated = {};

  // An input, empty if it has none of that name.
  std::string Input(const std::string& name) const {
    const auto found = inputs.find(name);
    return found == inputs.end() ? std::string() : found->second;
  }

  WallTime FirstStart() const { return first_start.value_or(start); }

  // In progress, and its lease is current. Without a driver it continues when it is resumed.
  bool driven = false;
};

}  // namespace muster::plan
