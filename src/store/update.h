#pragma once

#include <functional>
#include <optional>
#include <string>

#include "muster/result.h"
#include "muster/store.h"

namespace muster::store {

// What to make of a record as it is stored now (none: it does not exist). No change: leave it as it
// is. An error that does not pass by itself ends the update with that error.
using UpdateFunction = std::function<Result<std::optional<Change>>(std::optional<Record> stored)>;

// Read-modify-write of one record that this caller does not hold. `update` runs again on what is
// stored then if another writer was faster, or after a failure that may pass. Tries are bounded;
// between them it waits for the store, longer each time.
//
// An unknown outcome is read back: if the record is what was written, the update has succeeded.
// Only if others have changed it since can that not be seen, and `update` runs on what they made of
// it; should it refuse that, the answer is kUnknownOutcome.
//
// kUnavailable: others kept changing the record. Other errors are those of the store and of
// `update`.
Status Update(Store& store, const std::string& kind, const std::string& key,
              const UpdateFunction& update);

}  // namespace muster::store
