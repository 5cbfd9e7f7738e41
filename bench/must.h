#pragma once

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "muster/result.h"

namespace muster::bench {

// The value; what a benchmark cannot go on without is thrown.
template <class T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace muster::bench
