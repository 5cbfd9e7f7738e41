#pragma once

#include <chrono>

#include "muster/store.h"

namespace muster::bench {

struct ClaimCost {
  std::chrono::duration<double, std::micro> alone{};
  std::chrono::duration<double, std::micro> beside{};

  double ratio() const { return beside / alone; }
};

// The median times of claiming one of the due records of `alone`, and of `beside`, which also holds
// many finished ones: a claim here, a claim there, `samples` times. Each record is made due again
// after its claim.
ClaimCost MeasureClaimCost(store::Store& alone, store::Store& beside, int samples);

}  // namespace muster::bench
