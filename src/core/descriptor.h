#pragma once

#include <string>
#include <utility>

#include "muster/result.h"

namespace muster {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int get() const { return fd_; }
  void Close();

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

// Descriptor exhaustion is not the fault of a file, database or server: always kUnavailable, with
// its own hint.
bool IsOutOfDescriptors(int reason);  // an errno
Error OutOfDescriptors(std::string message);
bool IsOutOfDescriptors(const Error& error);

// Whether this process is currently out of descriptors.
bool HasNoDescriptors();

// Closed on exec. kUnavailable: out of descriptors.
Result<Pipe> MakePipe();

}  // namespace muster
