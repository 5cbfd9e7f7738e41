#pragma once

// Bugs that can be planted into this code at compile time, to prove that the simulator finds
// them. `PLANTED_BUG(name)` is false, and costs nothing, unless the build sets
// MUSTER_PLANTED_BUG_name; only the test builds in src/sim do.
#define PLANTED_BUG(name) PLANTED_BUG_IS_SET(MUSTER_PLANTED_BUG_##name)

// A macro that is defined as 1 puts "0," in front, so that `true` comes second; any other leaves
// `false` there.
#define PLANTED_BUG_IS_SET(macro) PLANTED_BUG_PASTE(macro)
#define PLANTED_BUG_PASTE(value) PLANTED_BUG_CHOOSE(PLANTED_BUG_PREFIX_##value)
#define PLANTED_BUG_PREFIX_1 0,
#define PLANTED_BUG_CHOOSE(prefix) PLANTED_BUG_SECOND(prefix true, false)
#define PLANTED_BUG_SECOND(ignored, value, ...) value
