#pragma once

#include <map>
#include <stop_token>

#include "core/condition.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "muster/store.h"

namespace muster::work {

// Decides which items of a worker may start together. An item whose last holder died without
// progress is a suspect: it starts alone, so that the next death blames it and not the items beside
// it. An item that has made progress in this hold is past the gate: it may start again wherever its
// process dies, since progress resets its attempts. Thread-safe.
class SuspectGate {
 public:
  // No item counts as starting for longer than `longest`: one that hangs must not stop the others.
  SuspectGate(Env& env, milliseconds longest) : env_(env), longest_(longest), changed_(env) {}

  // One slot's way through the gate. Used by one thread.
  class Pass {
   public:
    explicit Pass(SuspectGate& gate) : gate_(gate) {}
    ~Pass() { Leave(); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    // Call before acquiring an item: waits while a suspect starts or is about to. False: stopped.
    bool Enter(const std::stop_token& stop);

    // The acquired item is a suspect: waits until no other item is starting. False: stopped, or not
    // before `until`.
    bool BeAlone(MonoTime until, const std::stop_token& stop);

    // The item has made progress or ended, or none was acquired.
    void Leave();

   private:
    SuspectGate& gate_;
  };

 private:
  // Whether another slot's item is starting.
  bool Busy(const Pass* self, MonoTime now) const REQUIRES(mutex_);
  // Whether a suspect of another slot starts or waits.
  bool Reserved(MonoTime now) const REQUIRES(mutex_);
  void Leave(const Pass* pass);

  struct Start {
    MonoTime until;
    bool alone = false;
  };

  Env& env_;
  const milliseconds longest_;
  Mutex mutex_;
  Condition changed_;
  std::map<const Pass*, Start> starting_ GUARDED_BY(mutex_);
  int suspects_waiting_ GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::work
