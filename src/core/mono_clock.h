#pragma once

#include <ctime>

namespace muster {

// The clock behind MonoNow. It keeps running while the machine is suspended, as leases in the store
// do: deadlines depend on it.
clockid_t MonoClock();

}  // namespace muster
