#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "muster/env.h"

namespace muster {

// Where in its queue a claim begins to look. Until the next vacuum, what was claimed before leaves
// dead entries at the low end of the index of due times, and walking over those of a busy minute
// takes a hundred times as long as the claim itself. A claim therefore begins where the one before
// found its first record, and at the very beginning once a second: for what somebody gave back
// further down. Nobody may conclude from a claim with a floor that a queue is empty.
//
// Thread-safe.
class PostgresDueFloor {
 public:
  static constexpr WallTime kNone = WallTime::min();

  explicit PostgresDueFloor(Env& env) : env_(env) {}

  // The due time from which on to look; kNone: from the very beginning.
  WallTime Get(const std::string& kind, const std::string& queue);

  // A claim found its first record there.
  void Set(const std::string& kind, const std::string& queue, WallTime oldest);

 private:
  struct Floor {
    WallTime due = kNone;
    MonoTime valid_until;
  };

  Env& env_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Floor> floors_;  // by kind and queue
};

}  // namespace muster
