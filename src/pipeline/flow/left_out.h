#pragma once

namespace muster::pipeline {

// Why sources of search clusters do not list an index.
inline constexpr char kLeftOutForDot[] =
    "the name begins with a dot: name it at the end of the source's URL";
inline constexpr char kLeftOutIfHidden[] = "hidden: name it at the end of the source's URL";

// A store's records at a target would pass for that store: not even a name selects them.
inline constexpr char kLeftOutAsStore[] = "a Muster store";

}  // namespace muster::pipeline
