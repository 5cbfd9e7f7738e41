#pragma once

#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

class FileCalls;

// Appends a line, a JSON object that begins with `key`, unless the file has one with that key, and
// makes it durable: success means that the line is on disk. Any number of processes may do so at
// the same time, and after a failure again.
Status AppendOnce(const std::string& path, std::string_view line, std::string_view key,
                  FileCalls& calls);

}  // namespace muster
