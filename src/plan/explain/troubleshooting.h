#pragma once

#include <optional>
#include <string>

namespace muster::plan {

// What usually is behind a failure, and what to do about it.
struct Remedy {
  std::string likely;
  std::string remedy;
};

// By the error's name and cause, on every profile. None: nothing is known.
std::optional<Remedy> RemedyFor(const std::string& error, const std::string& cause);

}  // namespace muster::plan
