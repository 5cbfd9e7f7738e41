#include "serve/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace muster::serve {
namespace {

// An IPv4 or IPv6 address as the system calls take it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  sockaddr_in& Ipv4() { return reinterpret_cast<sockaddr_in&>(storage); }
  sockaddr_in6& Ipv6() { return reinterpret_cast<sockaddr_in6&>(storage); }

  static Result<SocketAddress> Parse(const std::string& address, int port) {
    SocketAddress parsed;
    if (inet_pton(AF_INET, address.c_str(), &parsed.Ipv4().sin_addr) == 1) {
      parsed.Ipv4().sin_family = AF_INET;
      parsed.Ipv4().sin_port = htons(static_cast<uint16_t>(port));
      parsed.size = sizeof(sockaddr_in);
    } else if (inet_pton(AF_INET6, address.c_str(), &parsed.Ipv6().sin6_addr) == 1) {
      parsed.Ipv6().sin6_family = AF_INET6;
      parsed.Ipv6().sin6_port = htons(static_cast<uint16_t>(port));
      parsed.size = sizeof(sockaddr_in6);
    } else {
      return Error{Code::kInvalid, "'" + address + "' is not a numeric IP address",
                   "give one like 127.0.0.1, ::1 or 0.0.0.0"};
    }
    return parsed;
  }

  std::string Text() {
    char text[INET6_ADDRSTRLEN] = {};
    const bool is_v4 = storage.ss_family == AF_INET;
    const void* bytes = is_v4 ? static_cast<const void*>(&Ipv4().sin_addr) : &Ipv6().sin6_addr;
    inet_ntop(storage.ss_family, bytes, text, sizeof text);
    return text;
  }
};

}  // namespace

Result<Listener> Listener::Open(const std::string& address, int port) {
  MUSTER_ASSIGN(SocketAddress parsed, SocketAddress::Parse(address, port));
  Listener listener(
      ::socket(parsed.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  setsockopt(listener.socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  constexpr int kBacklog = 128;
  if (bind(listener.socket_, parsed.get(), parsed.size) != 0 ||
      listen(listener.socket_, kBacklog) != 0) {
    return Error{Code::kUnavailable,
                 "cannot listen on " + address + " port " + std::to_string(port) + ": " +
                     std::strerror(errno),
                 "choose another with --port, or 0 for a free one"};
  }
  return listener;
}

Listener::~Listener() {
  if (socket_ >= 0) close(socket_);
}

Listener::Listener(Listener&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

int Listener::port() const {
  SocketAddress address;
  getsockname(socket_, address.get(), &address.size);
  return ntohs(address.storage.ss_family == AF_INET ? address.Ipv4().sin_port
                                                    : address.Ipv6().sin6_port);
}

Listener::Client Listener::Accept() const {
  SocketAddress peer;
  const int accepted = accept4(socket_, peer.get(), &peer.size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (accepted < 0) return {.error = errno, .peer = {}};
  const int on = 1;
  setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {.socket = accepted, .peer = peer.Text()};
}

}  // namespace muster::serve
