#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"
#include "work/records.h"

namespace muster::work {

// The right to redrive letters of a run: one redrive of a run at a time. Its record also has the
// page of letters that is being written, stored before the first of them reaches the sink: after a
// crash the next redrive compares it with the sink's own progress and knows which are written.
// Used by one thread; `store` and `env` must outlive it.
class RedriveLease {
 public:
  // Waits for a redrive that was killed until its lease has ended. kConflict: another one is alive.
  // `owner` is for people.
  static Result<RedriveLease> Acquire(store::Store& store, const std::string& run,
                                      const std::string& owner, Env& env, std::stop_token stop);

  const RedrivePageBody& page() const { return page_; }
  const std::string& run() const { return lease_.queue(); }
  int64_t epoch() const { return lease_.epoch(); }
  const std::string& holder() const { return lease_.owner(); }

  // Until when the holder may write to the sink.
  MonoTime WriteDeadline() const;

  // Stores a page, which renews the lease. kLeaseLost: another redrive has taken over.
  Status Save(RedrivePageBody page);

  // Renews the lease if a part of it has passed.
  Status KeepUp();

  // Lets the next redrive begin at once. The page stays as it is.
  Status Release() { return lease_.Release(); }

 private:
  RedriveLease(store::Lease lease, RedrivePageBody page, Env& env)
      : lease_(std::move(lease)), page_(std::move(page)), env_(&env), renewed_(env.MonoNow()) {}

  store::Lease lease_;
  RedrivePageBody page_;
  Env* env_;
  MonoTime renewed_;
};

}  // namespace muster::work
