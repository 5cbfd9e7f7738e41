#pragma once

#include <ctime>

namespace muster {

// The clock behind MonoNow. It keeps running while the machine is suspended: deadlines use it, and
// the store's leases expire meanwhile.
clockid_t MonoClock();

}  // namespace muster
