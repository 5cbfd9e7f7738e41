#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::fuzz {

// Files of a shard as one string: names and contents, each preceded by its length in four bytes.
// Any bytes can be parsed as a bundle; a truncated entry ends it.
using Bundle = std::map<std::string, std::string>;

Bundle Unbundle(std::string_view bytes);
std::string ToBytes(const Bundle& bundle);

// The file with a correct CRC, if it has a footer: otherwise random changes would never get past
// the check.
std::string WithRightCrc(std::string_view file);

}  // namespace muster::fuzz
