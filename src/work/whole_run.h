#pragma once

#include <string>
#include <vector>

#include "muster/result.h"
#include "muster/store.h"
#include "muster/work.h"

namespace muster::work {

// For a caller that creates a run, drives it to its end, uses what it made and removes it.

// Creates the run's records unless they exist, without taking part in it.
Status CreateRun(store::Store& store, const RunSpec& run, const WorkTerms& terms, Env& env);

// The start of a run that begins now: by the store's clock, but later than every run that the store
// has. That clock may have been set back, and earlier versions used the creators' clocks. What a
// run writes has to prevail over what earlier ones wrote of the same documents.
Result<int64_t> NextStartMs(store::Store& store);

// The items of a finished run in the order of the source: each is followed by the parts that were
// split off from it. kIncompatible: one is missing or not done.
Result<std::vector<ItemInfo>> ItemsInOrder(store::Store& store, const std::string& run);

// Makes all open items, and the preparation, due at once: the caller knows that their holders are
// gone, and need not wait for the leases to end. A holder that still lives is fenced off.
Status ReleaseAll(store::Store& store, const std::string& run);

// Removes all records of this incarnation of the run but the run's own. Returns how many there
// were.
Result<int64_t> RemoveRecords(store::Store& store, const std::string& run,
                              const std::string& incarnation);

// Removes all records of this incarnation of the run, and of a run that is gone those that a late
// worker has left; another incarnation is left alone. The run's own record goes last, so that an
// interrupted removal can be repeated.
Status RemoveRun(store::Store& store, const std::string& run, const std::string& incarnation);

}  // namespace muster::work
