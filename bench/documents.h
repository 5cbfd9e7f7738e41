#pragma once

#include <cstdint>
#include <string>

namespace muster::bench {

// Writes a file of made-up orders, one JSON object of about 600 bytes a line, always the same,
// until it has at least so many bytes. The answer is how many lines it has.
int64_t WriteDocuments(const std::string& path, uint64_t bytes);

}  // namespace muster::bench
