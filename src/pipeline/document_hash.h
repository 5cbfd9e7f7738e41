#pragma once

#include <cstdint>
#include <string_view>

#include "muster/result.h"

namespace muster {

// A hash of what a JSON document says, not of how it is written: the order of fields, white space,
// escapes and the form of numbers (1.0, 1e0) do not matter. The order of arrays does.
struct DocumentHash {
  uint64_t low = 0;
  uint64_t high = 0;

  DocumentHash& operator+=(const DocumentHash& other) {
    low += other.low;
    high += other.high;
    return *this;
  }
  bool operator==(const DocumentHash&) const = default;
};

enum class HashTypes {
  kIgnored,  // "1" is 1 and null is missing: a table cannot always tell
  kCompared,
};

// kInvalid: not a JSON object.
Result<DocumentHash> HashDocument(std::string_view body, HashTypes types = HashTypes::kIgnored);

// A hash of bytes as they are.
DocumentHash HashBytes(std::string_view bytes);

}  // namespace muster
