#pragma once

#include <cstdint>
#include <string_view>

#include "muster/result.h"

namespace muster::pipeline {

// A hash of a JSON document's content, independent of field order, white space, escapes and number
// format (1.0, 1e0). Array order matters.
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
  kIgnored,  // "1" equals 1 and null equals missing: tables cannot always tell them apart
  kCompared,
};

// kInvalid: not a JSON object.
Result<DocumentHash> HashDocument(std::string_view body, HashTypes types = HashTypes::kIgnored);

// A hash of raw bytes.
DocumentHash HashBytes(std::string_view bytes);

}  // namespace muster::pipeline
