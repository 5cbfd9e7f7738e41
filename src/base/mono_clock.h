#pragma once

#include <ctime>

namespace muster {

// The system's clock that MonoNow reads. It goes on while the machine is suspended: deadlines are
// counted by it, and the store's leases end meanwhile.
clockid_t MonoClock();

}  // namespace muster
