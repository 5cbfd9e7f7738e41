#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/mutex.h"
#include "muster/env.h"

namespace muster::store {

// Where in its queue a claim starts to scan. Until the next vacuum, earlier claims leave dead
// entries at the low end of the index of due times, and scanning those of a busy minute takes a
// hundred times as long as the claim itself. A claim therefore starts where the previous one found
// its first record, and at the very start once a second: for records released further down. A claim
// with a floor does not prove that a queue is empty.
//
// Thread-safe.
class PostgresDueFloor {
 public:
  static constexpr WallTime kNone = WallTime::min();

  explicit PostgresDueFloor(Env& env) : env_(env) {}

  // The due time to start from; kNone: the very start.
  WallTime Get(const std::string& kind, const std::string& queue);

  // A claim found its first record there.
  void Set(const std::string& kind, const std::string& queue, WallTime oldest);

 private:
  struct Floor {
    WallTime due = kNone;
    MonoTime valid_until;
  };

  Env& env_;
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Floor> floors_  // by kind and queue
      GUARDED_BY(mutex_);
};

}  // namespace muster::store
