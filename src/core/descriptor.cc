#include "core/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace muster {

namespace {

constexpr char kHint[] =
    "this process has reached its limit of open files and connections: raise it (ulimit -n), "
    "or use fewer slots (--slots)";

}  // namespace

bool IsOutOfDescriptors(int reason) { return reason == EMFILE || reason == ENFILE; }

Error OutOfDescriptors(std::string message) {
  return Error{Code::kUnavailable, std::move(message), kHint};
}

bool IsOutOfDescriptors(const Error& error) { return error.hint == kHint; }

bool HasNoDescriptors() {
  const Descriptor probe(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return probe.get() < 0 && IsOutOfDescriptors(errno);
}

void Descriptor::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return OutOfDescriptors("no pipe for a program: " + std::string(strerror(errno)));
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace muster
