#include "bundle.h"

#include <algorithm>
#include <cstring>

#include "lucene/codec.h"

namespace muster::fuzz {
namespace {

std::string_view Take(std::string_view& bytes) {
  uint32_t length = 0;
  if (bytes.size() < sizeof length) return {};
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.remove_prefix(sizeof length);
  const std::string_view taken = bytes.substr(0, std::min<size_t>(length, bytes.size()));
  bytes.remove_prefix(taken.size());
  return taken;
}

void Put(std::string& bytes, std::string_view text) {
  const auto length = static_cast<uint32_t>(text.size());
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += text;
}

}  // namespace

Bundle Unbundle(std::string_view bytes) {
  Bundle bundle;
  while (bytes.size() >= sizeof(uint32_t)) {
    const std::string name(Take(bytes));
    bundle[name] = Take(bytes);
  }
  return bundle;
}

std::string ToBytes(const Bundle& bundle) {
  std::string bytes;
  for (const auto& [name, content] : bundle) {
    Put(bytes, name);
    Put(bytes, content);
  }
  return bytes;
}

std::string WithRightCrc(std::string_view file) {
  constexpr size_t kCrcBytes = 8;
  std::string fixed(file);
  if (file.size() < lucene::kFooterBytes ||
      !lucene::FooterCrc(file.substr(file.size() - lucene::kFooterBytes), "")) {
    return fixed;
  }
  const uint32_t crc = lucene::Crc32(0, file.substr(0, file.size() - kCrcBytes));
  for (size_t i = 0; i < sizeof crc; ++i) {
    fixed[file.size() - 1 - i] = static_cast<char>(crc >> (8 * i));
  }
  return fixed;
}

}  // namespace muster::fuzz
