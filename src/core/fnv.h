#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

// 64-bit FNV-1a. Stored on disk, and part of formats that others write: must never change.
inline constexpr uint64_t kFnvStart = 0xcbf29ce484222325;

constexpr uint64_t FnvStep(uint64_t hash, char c) {
  return (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
}

constexpr uint64_t Fnv1a(std::string_view bytes, uint64_t start = kFnvStart) {
  uint64_t hash = start;
  for (const char c : bytes) hash = FnvStep(hash, c);
  return hash;
}

}  // namespace muster
