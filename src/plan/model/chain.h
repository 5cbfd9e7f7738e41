#pragma once

#include <string>
#include <vector>

#include "core/json.h"

namespace muster::plan {

// How many states are entered and events are written when all goes well.
struct StateCount {
  int64_t transitions = 0;
  int64_t events = 0;
};

// The same for the quickest and the slowest that is expected: a slow flow is asked more often.
struct CountRange {
  StateCount quick = {};
  StateCount slow = {};

  void Add(const CountRange& other);
};

// A name for a state from its parts, of at most 80 characters: what is longer ends in a hash.
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
  // Every state added so far that needs a successor gets this one.
  void Add(const std::string& name, Json state, const CountRange& times = {{1, 0}, {1, 0}});

  // A state that others name; it goes on where those before go on. It is not counted: it is where
  // failures lead to.
  void AddSide(const std::string& name, Json state);

  // A state that others name, and that ends or names itself what follows.
  void AddOther(const std::string& name, Json state);

  // No state added so far needs a successor: the last one names what follows.
  void Detach() { open_.clear(); }

  // What runs inside of a state that was added.
  void Count(const CountRange& inner) { count_.Add(inner); }
  const CountRange& count() const { return count_; }

  bool empty() const { return states_.empty(); }

  // Of all states, in the order in which they were added.
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
