#pragma once

#include <span>
#include <string_view>

#include "muster/store.h"

namespace muster::store {

// Record rules common to all backends, checked before a backend does anything.

Status CheckKind(std::string_view kind);
Status CheckKey(std::string_view key);
Status CheckScan(std::string_view kind, std::string_view prefix, std::string_view after, int limit);
Status CheckChanges(std::span<const Change> changes);
Status CheckClaim(const ClaimRequest& request);

// The first version of a new record. Random, so that a stale writer cannot mistake a record that
// was deleted and recreated for the one it knew. Leaves room for 2^60 changes.
int64_t FirstVersion(Env& env);

// By how much a claim raises the version. It differs between claims, so that a holder whose store
// went back in time cannot mistake a record that others have claimed since for the one it knew.
int64_t ClaimStep(const ClaimRequest& request);

}  // namespace muster::store
