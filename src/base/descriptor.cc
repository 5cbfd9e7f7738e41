#include "base/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace muster {

void Descriptor::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{Code::kUnavailable, "no pipe for a program: " + std::string(strerror(errno))};
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace muster
