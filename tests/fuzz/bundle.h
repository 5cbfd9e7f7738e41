#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::fuzz {

// Files of a shard in one piece: name and content one after the other, each after its length in
// four bytes. Any bytes can be read so; what is too short ends it.
using Bundle = std::map<std::string, std::string>;

Bundle Unbundle(std::string_view bytes);
std::string ToBytes(const Bundle& bundle);

// The file with a right CRC at its end, if it has a footer: random changes would never get beyond
// it otherwise.
std::string WithRightCrc(std::string_view file);

}  // namespace muster::fuzz
