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

// Errors for want of descriptors, which files, databases and servers are not to blame for: all are
// kUnavailable and have a hint of their own.
bool IsOutOfDescriptors(int reason);  // an errno
Error OutOfDescriptors(std::string message);
bool IsOutOfDescriptors(const Error& error);

// Whether this process could not open anything right now.
bool HasNoDescriptors();

// Closed in programs that we start. kUnavailable: there are no descriptors left.
Result<Pipe> MakePipe();

}  // namespace muster
