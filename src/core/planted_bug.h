#pragma once

// Bugs that can be planted into this code to prove that the simulator finds them. Except in one
// test build, that of src/sim, `PLANTED_BUG(name)` is false and costs nothing; there it is true if
// that bug was selected.
#ifdef MUSTER_PLANTED_BUGS
namespace muster {
// Defined by the program that selects.
bool IsPlanted(const char* name);
}  // namespace muster
#define PLANTED_BUG(name) ::muster::IsPlanted(#name)
#else
#define PLANTED_BUG(name) false
#endif
