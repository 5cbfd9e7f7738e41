#pragma once

#include <optional>
#include <string>

namespace muster::plan {

// The usual cause of a failure, and the remedy.
struct Remedy {
  std::string likely;
  std::string remedy;
};

// By the error's name and cause, on every profile. None: no advice.
std::optional<Remedy> RemedyFor(const std::string& error, const std::string& cause);

}  // namespace muster::plan
