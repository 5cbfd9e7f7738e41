#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace muster::lucene {

// A value of a field as Lucene keeps it. Doc values are only integers and text: what the integers
// stand for, the mapping says.
using IndexedValue = std::variant<int64_t, float, double, std::string>;

}  // namespace muster::lucene
