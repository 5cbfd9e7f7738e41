#pragma once

#include <span>
#include <string_view>

namespace muster::serve {

// A file that the build has put into the program.
struct EmbeddedFile {
  std::string_view name;
  std::string_view bytes;
};

inline constexpr std::string_view kApiDocumentName = "openapi.yaml";

// Made by cmake/embed_files.cmake.
std::span<const EmbeddedFile> EmbeddedFiles();

}  // namespace muster::serve
