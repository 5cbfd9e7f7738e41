#pragma once

#include <string>

#include "muster/result.h"

namespace muster::serve {

// A TCP socket that listens. Used by one thread; closed when it is destroyed.
class Listener {
 public:
  // `address` is numeric; port 0 is a free one. kInvalid: not an address. kUnavailable: the port is
  // taken.
  static Result<Listener> Open(const std::string& address, int port);
  ~Listener();
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;

  int socket() const { return socket_; }
  int port() const;

  struct Client {
    int socket = -1;   // does not block; -1: none is waiting, or it could not be accepted
    int error = 0;     // errno
    std::string peer;  // its address
  };
  Client Accept() const;

 private:
  explicit Listener(int socket) : socket_(socket) {}

  int socket_;
};

}  // namespace muster::serve
