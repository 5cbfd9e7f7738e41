#pragma once

#include <map>
#include <mutex>
#include <stop_token>
#include <string>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster {

// Whether a worker, with all its slots, gets anything through: what stands in the way of all its
// items is the source's, the sink's or its own fault, and none of the items'. Thread-safe.
class Circuit {
 public:
  // The first pause doubles with each further failure.
  Circuit(Env& env, milliseconds first_pause) : env_(env), first_pause_(first_pause) {}

  // Something of the item is in the sink to stay.
  void Succeeded(const std::string& item);

  // An item failed for a reason that need not lie in its data. True: others got through since it
  // failed before, so something is the matter with this one all the same.
  bool Failed(const std::string& item, const Error& why);

  // To be called before an item is acquired: while nothing gets through it waits, longer and
  // longer, and lets one slot at a time have a try. False: stopped.
  bool Await(const std::stop_token& stop);

  // To be called after it: a try that has come to nothing, as there was nothing to do, is no try.
  void Settled();

 private:
  milliseconds Pause() const;

  Env& env_;
  const milliseconds first_pause_;
  std::mutex mutex_;
  int64_t successes_ = 0;
  int failures_ = 0;  // in a row
  bool trying_ = false;
  MonoTime since_{};
  MonoTime next_try_{};
  // Items that have failed: how many successes of others there had been. Kept as small as it is
  // useful: those of long ago are forgotten.
  std::map<std::string, int64_t> failed_at_;
};

}  // namespace muster
