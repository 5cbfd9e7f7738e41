#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "muster/env.h"
#include "muster/events.h"
#include "muster/replica.h"
#include "muster/store.h"
#include "replica/read_model.h"

namespace muster {

// A rebuild without downtime: a new version of a projection catches up beside the one in use, with
// its side effects off, until it takes over in one transaction. The old one is kept up to date, so
// that one can go back, until it is dropped. Each step is durable: whoever was interrupted calls
// again.
class Rebuild {
 public:
  Rebuild(Store& store, EventLog& log, ReadModel& model, Env& env, const std::string& set,
          Projection& projection)
      : store_(store), log_(log), model_(model), env_(env), set_(set), projection_(projection) {}

  // Lets the workers keep a new version, if there is none besides the active one. Its number.
  Result<int> Begin();

  // Waits until the new version is no more than `lag` events behind, telling `progress` how many
  // events are still to come. Somebody has to run the set meanwhile.
  Status CatchUp(int64_t lag, const std::function<void(int64_t left)>& progress,
                 std::stop_token stop);

  // Makes the newest version the one that readers see, or with `back` the one before: holds the
  // active one for a moment, so that the other is at least as far, and swaps.
  Status Swap(bool back, std::stop_token stop);

  // Ends the version that is not active, and drops its tables. The number of it.
  Result<int> Finish();

 private:
  Result<int> Other() const;
  Status Hold(int version, bool held);
  Status SwapHeld(int from, int to, std::stop_token stop);

  Store& store_;
  EventLog& log_;
  ReadModel& model_;
  Env& env_;
  const std::string set_;
  Projection& projection_;
};

}  // namespace muster
