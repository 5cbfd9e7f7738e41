#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace muster {

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string content;
  // In pieces, since a pipe does not tell its size and most files are far below the limit.
  while (file && content.size() <= max_bytes) {
    size_t before = content.size();
    content.resize(before + 64 * 1024);
    file.read(content.data() + before, static_cast<std::streamsize>(content.size() - before));
    content.resize(before + static_cast<size_t>(file.gcount()));
  }
  if (file.bad() || (file.fail() && !file.eof())) {
    return Error{Code::kInvalid, "cannot read " + path + ": " + std::strerror(errno),
                 "check the path and who may read the file"};
  }
  if (content.size() > max_bytes) {
    return Error{Code::kInvalid,
                 path + " is larger than the limit of " + std::to_string(max_bytes) + " bytes",
                 "check that it is the right file"};
  }
  return content;
}

}  // namespace muster
