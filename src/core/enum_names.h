#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace muster {

// The names of an enum's values: one table for writing and for reading.
//
//   constexpr EnumNames<Phase, 2> kPhases{{{{Phase::kExtract, "extract"}, …}}};
template <class Enum, size_t N>
struct EnumNames {
  std::array<std::pair<Enum, std::string_view>, N> table;

  // Empty: the table lacks the value.
  constexpr std::string_view NameOf(Enum value) const {
    for (const auto& [known, name] : table) {
      if (known == value) return name;
    }
    return {};
  }

  constexpr std::optional<Enum> Find(std::string_view text) const {
    for (const auto& [value, name] : table) {
      if (name == text) return value;
    }
    return std::nullopt;
  }
};

}  // namespace muster
