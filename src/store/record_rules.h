#pragma once

#include <span>
#include <string_view>

#include "muster/store.h"

namespace muster {

// The rules about records that hold on every backend, checked before a backend does anything.

Status CheckKind(std::string_view kind);
Status CheckKey(std::string_view key);
Status CheckScan(std::string_view kind, std::string_view prefix, std::string_view after, int limit);
Status CheckChanges(std::span<const Change> changes);
Status CheckClaim(const ClaimRequest& request);

// The version of a record that is created. It is drawn at random, so that a stale writer cannot
// take a record that was deleted and created again for the one it knew. Leaves room for 2^60
// changes.
int64_t FirstVersion(Env& env);

// By how much a claim raises the version. It differs from claim to claim, so that a holder whose
// store went back in time cannot take a record that others have claimed since for the one it knew.
int64_t ClaimStep(const ClaimRequest& request);

}  // namespace muster
