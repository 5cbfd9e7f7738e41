#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/run_status.h"
#include "muster/env.h"

namespace muster::plan {

// One of a run's attempts to come to its end.
struct Attempt {
  int64_t number = 1;
  std::string execution;                // its state machine's
  std::vector<std::string> again = {};  // tasks that it did again although they had succeeded
};

// A migration as it stands in the store.
struct RunState {
  // What the store and commands know it by: the input migrationId, and more than that if a run of
  // another tenant or environment has the same.
  std::string id;
  std::string plan;
  std::string path;         // of the plan's file, absolute
  std::string folder = {};  // that it was begun in: relative paths begin there
  std::string hash;
  std::string incarnation = {};   // its own, whatever others are called
  bool unmarked_staging = false;  // an older version began it, which staged without its name
  std::string profile;
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> variables = {};  // that did not come from the file
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
  // Tasks that this attempt does again although they had succeeded; only Resume says so.
  std::vector<std::string> invalidated = {};

  // An input, empty if it has none of that name.
  std::string Input(const std::string& name) const {
    const auto found = inputs.find(name);
    return found == inputs.end() ? std::string() : found->second;
  }

  WallTime FirstStart() const { return first_start.value_or(start); }

  // In progress, and its lease is current; without a driver it goes on when it is resumed.
  bool driven = false;
};

}  // namespace muster::plan
