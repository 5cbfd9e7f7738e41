#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include <stdexcept>

namespace muster::testing {

// Binds a socket to a free port on 127.0.0.1, and returns the port. Throws std::runtime_error.
inline int BindToLoopback(int socket) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(socket, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("no free port on 127.0.0.1");
  }
  return ntohs(address.sin_port);
}

// The same, and accepts connections.
inline int ListenOnLoopback(int socket) {
  const int port = BindToLoopback(socket);
  if (listen(socket, 64) != 0) throw std::runtime_error("cannot listen on 127.0.0.1");
  return port;
}

}  // namespace muster::testing
