#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "muster/result.h"

namespace muster::task {

// What a target knows a transform by, in its table `muster_transform`, which changes in the same
// transaction as the rows that are loaded:
//
//   task      the key
//   run       that opened it last; one of the same name, on another store, is another one
//   attempt   of that run; an earlier one of it cannot load any more
//   epoch     grows with every session that opens it: only the last one can load
//   call      of that session
//   result    what the call has committed; null: nothing yet
//   updated   when the row changed last
//
// PostgreSQL's has holder_pid and holder_since as well, the server process of the last session.
struct LoadFence {
  std::string task;
  std::string run;
  int64_t attempt = 1;
  // The same for all tries of one call: what a try has committed, the others don't load again.
  std::string call;
};

// A row of that table, as far as it decides who may load.
struct StoredLoad {
  std::string run;
  int64_t attempt = 0;
  int64_t epoch = 0;
  std::string call;
  std::optional<std::string> result;
};

// Called, from any thread, with what a target waits for; empty: for nothing any more.
using OnWait = std::function<void(const std::string& what)>;

// What all tries of a call have in common, by the token of one ("NAME:PATH:ENTRY:RETRY").
std::string CallOfToken(const std::string& token);

// The result if this call has been committed, by whatever try. kLeaseLost: a later attempt has
// opened it.
Result<std::optional<std::string>> CheckOpen(const LoadFence& fence, const StoredLoad& stored);

// kLeaseLost: another session has opened it since this one has taken `epoch`.
Status CheckHeld(const LoadFence& fence, int64_t epoch, const StoredLoad& stored);

}  // namespace muster::task
