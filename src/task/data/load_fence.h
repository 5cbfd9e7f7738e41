#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/record_version.h"
#include "muster/result.h"

namespace muster::task {

// Identifies a transform in the target's table `muster_transform`, which changes in the same
// transaction as the loaded rows:
//
//   task      the key
//   run       the run that last opened it, by id: a run of the same name on another store differs
//   attempt   of that run; earlier attempts can no longer load
//   epoch     grows with every session that opens it: only the latest can load
//   call      of that session
//   result    committed by the call; null: nothing yet
//   updated   when the row last changed
//   format    its default is the version of the table
//
// In PostgreSQL also holder_pid and holder_since, the server process of the latest session.
struct LoadFence {
  std::string task;
  std::string run;
  int64_t attempt = 1;
  // The same for all tries of one call: what one has committed, the others do not load again.
  std::string call;
};

inline constexpr RecordFormat kTransformFormat{"muster_transform", 1};

// The columns of that table by which a session is fenced.
struct StoredLoad {
  std::string run;
  int64_t attempt = 0;
  int64_t epoch = 0;
  std::string call;
  std::optional<std::string> result;
};

// Called, from any thread, with what a target waits for; empty: the wait is over.
using OnWait = std::function<void(const std::string& what)>;

// The part of a token ("NAME:PATH:ENTRY:RETRY") that all tries of a call share.
std::string CallOfToken(const std::string& token);

// The result if a try of this call has committed. kLeaseLost: a later attempt has opened it.
Result<std::optional<std::string>> CheckOpen(const LoadFence& fence, const StoredLoad& stored);

// kLeaseLost: another session has opened it since this one took `epoch`.
Status CheckHeld(const LoadFence& fence, int64_t epoch, const StoredLoad& stored);

}  // namespace muster::task
