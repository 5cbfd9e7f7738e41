#pragma once

#include <string>
#include <vector>

#include "core/json.h"

namespace muster::plan {

// The number of states entered and events written without failures.
struct StateCount {
  int64_t transitions = 0;
  int64_t events = 0;
};

// The same for the shortest and the longest expected time: a slow flow is polled more often.
struct CountRange {
  StateCount quick = {};
  StateCount slow = {};

  void Add(const CountRange& other);
};

// A state name made of its parts, at most 80 characters: a longer one is cut and ends in a hash.
std::string StateName(const std::string& name);

// States one after another, for a state machine or a branch of one.
//
//   Chain chain;
//   chain.Add("Copy", {{"Type", "Task"}, …});
//   chain.AddSide("Notify", …);   // for a Catch of Copy; goes on where Copy goes on
//   chain.Add("Load", …);
//   Json machine = chain.Finish();
class Chain {
 public:
  // Links every state added so far that needs a successor to this one.
  void Add(const std::string& name, Json state, const CountRange& times = {{1, 0}, {1, 0}});

  // Adds a state that others name, with the successor of those before it. Not counted: only
  // failures lead there.
  void AddSide(const std::string& name, Json state);

  // Adds a state that others name, and that ends the chain or names its own successor.
  void AddOther(const std::string& name, Json state);

  // The last state names its own successor, so none added so far needs one.
  void Detach() { open_.clear(); }

  // Adds the counts of what runs inside a state.
  void Count(const CountRange& inner) { count_.Add(inner); }
  const CountRange& count() const { return count_; }

  bool empty() const { return states_.empty(); }

  // Names of all states, in the order in which they were added.
  const std::vector<std::string>& names() const { return names_; }

  // {"StartAt": …, "States": …}; states without a successor end the machine.
  Json Finish();

 private:
  void Put(const std::string& name, Json state);

  std::string start_;
  Json states_ = Json::object();
  std::vector<std::string> names_;
  std::vector<std::string> open_;
  CountRange count_;
};

}  // namespace muster::plan
