#pragma once

namespace muster::pipeline {

// Why sources of search clusters do not list an index.
inline constexpr char kLeftOutForDot[] =
    "the name begins with a dot: name it at the end of the source's URL";
inline constexpr char kLeftOutIfHidden[] = "hidden: name it at the end of the source's URL";

}  // namespace muster::pipeline
