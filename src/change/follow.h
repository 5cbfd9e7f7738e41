#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "change/outbox.h"
#include "muster/env.h"
#include "muster/events.h"
#include "muster/result.h"

namespace muster::change {

// Which changes of a PostgreSQL database become events.
struct FollowOptions {
  std::string source;                    // postgresql://…
  std::string name = "follow";           // of the slot, publications and checkpoints: [a-z0-9_]+
  std::vector<std::string> tables = {};  // "orders" or "shop.orders"
  std::vector<Outbox> outboxes = {};
  // Return when everything committed before the call is in the log; kCancelled: stopped earlier.
  bool once = false;
};

struct FollowReport {
  int64_t events = 0;         // appended by this process
  int64_t rejected = 0;       // changes among them that could not be events
  std::string position = {};  // how far the source's log is followed
};

// Called on the thread that follows.
class FollowObserver {
 public:
  virtual ~FollowObserver() = default;
  virtual void Started(const std::string& /*position*/) {}
  virtual void Advanced(const FollowReport& /*report*/) {}
  // It stopped for a while, and tries again.
  virtual void Waits(const Error& /*why*/) {}
};

// Appends every committed change of the tables to `log`, exactly once and in commit order, until a
// stop is requested: changes since the first call with this name, not the rows that existed before.
// That call creates a replication slot and publications at the source. Changes of a transaction are
// appended together, or in parts of thousands if there are more.
//
// Any number of processes may call it: one follows, the others stand by and take over where it
// stopped if it dies. Waits for a source or log that is unavailable, or for a slot that another
// process reads.
//
// kInvalid: the source or its tables lack something; the message lists everything. kIncompatible:
// changes are missing, since the slot is gone or ahead, or the source was exchanged or restored.
// The hint explains how to start over.
Result<FollowReport> Follow(events::EventLog& log, const FollowOptions& options,
                            FollowObserver& observer, Env& env, std::stop_token stop);

// Removes the slot and the publications; whether any existed. Following the source again starts
// over. kConflict: a process still follows it. Needs only `source` and `name`.
Result<bool> Unfollow(events::EventLog& log, const FollowOptions& options, Env& env);

}  // namespace muster::change
