#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::serve {

// A file of the page, in the program.
struct Asset {
  std::string path;  // "/app.js"; of index.html "/"
  std::string content_type;
  std::string_view bytes;
  std::string packed;  // the same by gzip
};

// The page that was built in.
const std::vector<Asset>& Assets();

// docs/api/openapi.yaml
std::string_view ApiDocument();

}  // namespace muster::serve
