#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "bars.h"
#include "must.h"
#include "muster/result.h"

namespace muster::bench {

struct StatesLoad {
  int executions = 2'000;
  int rounds = 5;  // of durable tasks; the median counts
  int threads = 4;
  int waiting = 100'000;
  int items = 100'000;
  bool smoke = false;
};

double SecondsSince(std::chrono::steady_clock::time_point start);
void Print(const std::string& what, double value, const std::string& unit);

// One task each: create, claim, start of the call, result. And the same four commits bare.
void DurableTasks(const StatesLoad& load, const std::string& store_url, Bars& bars);

// Many executions that wait, and then fall due together, beside bare claims and writes of as many
// records; on the store in memory also what they take of it.
void Waiting(const StatesLoad& load, const std::string& store_url, Bars& bars);

// A distributed Map over many items, driven by several engines as if each were a process, beside
// the bare commits of as many tasks.
void ManyItems(const StatesLoad& load, const std::string& store_url);

// A Map whose iterations look at the context, in an execution with a large input, beside the same
// with a small one.
void LargeInput(const StatesLoad& load, Bars& bars);

}  // namespace muster::bench
