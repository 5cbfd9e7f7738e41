#pragma once

#include <span>
#include <string_view>

namespace muster::serve {

// A file that is part of the program.
struct EmbeddedFile {
  std::string_view name;
  std::string_view bytes;
};

inline constexpr std::string_view kApiTemplateName = "openapi.in.yaml";

// Made by cmake/embed_files.cmake.
std::span<const EmbeddedFile> EmbeddedFiles();

// The bytes of one of them; empty: not found.
std::string_view EmbeddedText(std::string_view name);

}  // namespace muster::serve
