#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::serve {

// A file of the embedded page.
struct Asset {
  std::string path;  // "/app.js"; of index.html "/"
  std::string content_type;
  std::string_view bytes;
  std::string packed;  // the same by gzip
};

const std::vector<Asset>& Assets();

}  // namespace muster::serve
