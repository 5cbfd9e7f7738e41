#include "support/http_server.h"

#include <openssl/ssl.h>
#include <signal.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>

#include "support/loopback.h"

namespace muster::testing {
namespace {

// One connection's bytes, with or without TLS.
class Wire {
 public:
  Wire(int socket, const TlsIdentity* tls) : socket_(socket) {
    if (tls == nullptr) return;
    ssl_.reset(SSL_new(tls->context()));
    SSL_set_fd(ssl_.get(), socket_);
    open_ = SSL_accept(ssl_.get()) == 1;
  }

  // False at the end of the connection.
  bool Receive(std::string& buffer) {
    std::array<char, 16384> bytes;
    if (!open_) return false;
    const auto count = ssl_ ? SSL_read(ssl_.get(), bytes.data(), bytes.size())
                            : recv(socket_, bytes.data(), bytes.size(), 0);
    if (count <= 0) return false;
    buffer.append(bytes.data(), static_cast<size_t>(count));
    return true;
  }

  bool Send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const size_t left = bytes.size() - sent;
      const auto count = ssl_ ? SSL_write(ssl_.get(), bytes.data() + sent, static_cast<int>(left))
                              : send(socket_, bytes.data() + sent, left, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<size_t>(count);
    }
    return true;
  }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  int socket_;
  std::unique_ptr<SSL, Free> ssl_;
  bool open_ = true;
};

std::optional<HttpServerRequest> ReadRequest(Wire& wire, std::string& buffer) {
  size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!wire.Receive(buffer)) return std::nullopt;
  }
  HttpServerRequest request;
  const size_t space = buffer.find(' ');
  request.method = buffer.substr(0, space);
  request.target = buffer.substr(space + 1, buffer.find(' ', space + 1) - space - 1);
  for (size_t at = buffer.find("\r\n") + 2; at < end + 2;) {
    const size_t line_end = buffer.find("\r\n", at);
    const size_t colon = buffer.find(':', at);
    const size_t value = buffer.find_first_not_of(' ', colon + 1);
    request.headers.emplace_back(buffer.substr(at, colon - at),
                                 buffer.substr(value, line_end - value));
    at = line_end + 2;
  }
  const std::string length = request.Header("Content-Length");
  const size_t body = length.empty() ? 0 : std::stoul(length);
  buffer.erase(0, end + 4);
  while (buffer.size() < body) {
    if (!wire.Receive(buffer)) return std::nullopt;
  }
  request.body = buffer.substr(0, body);
  buffer.erase(0, body);
  return request;
}

}  // namespace

std::string HttpServerRequest::Header(const std::string& name) const {
  for (const auto& [key, value] : headers) {
    if (strcasecmp(key.c_str(), name.c_str()) == 0) return value;
  }
  return "";
}

HttpServerReply Answer(int status, const std::string& body,
                       const std::vector<std::pair<std::string, std::string>>& headers) {
  std::string bytes = "HTTP/1.1 " + std::to_string(status) + " Status\r\n";
  for (const auto& [name, value] : headers) bytes += name + ": " + value + "\r\n";
  bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  return {bytes};
}

HttpServerReply CloseWithoutAnswer() { return {"", HttpServerReply::Then::kClose}; }

HttpServerReply CloseMidBody() {
  return {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", HttpServerReply::Then::kClose};
}

HttpServerReply NeverAnswer() { return {"", HttpServerReply::Then::kHang}; }

HttpServer::HttpServer(Handler handler, const TlsIdentity* tls)
    : handler_(std::move(handler)),
      tls_(tls),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  port_ = ListenOnLoopback(listener_);
  acceptor_ = std::jthread([this] { Accept(); });
}

HttpServer::~HttpServer() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
  }
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  connections_.clear();
  close(listener_);
}

std::string HttpServer::Url(const std::string& target) const {
  return (tls_ != nullptr ? "https" : "http") + std::string("://127.0.0.1:") +
         std::to_string(port_) + target;
}

std::vector<HttpServerRequest> HttpServer::requests() const {
  const MutexLock lock(mutex_);
  return requests_;
}

void HttpServer::Accept() {
  for (int connection = 1;; ++connection) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0 && errno == EINTR) continue;
    if (socket < 0) return;
    const MutexLock lock(mutex_);
    if (stopping_) {
      close(socket);
      return;
    }
    sockets_.push_back(socket);
    connections_.emplace_back([this, socket, connection] { Serve(socket, connection); });
  }
}

void HttpServer::Serve(int socket, int connection) {
  // OpenSSL writes to sockets that the client has closed; ignore SIGPIPE on this thread only.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  {
    Wire wire(socket, tls_);
    std::string buffer;
    while (auto request = ReadRequest(wire, buffer)) {
      request->connection = connection;
      {
        const MutexLock lock(mutex_);
        requests_.push_back(*request);
      }
      const HttpServerReply reply = handler_(*request);
      if (!wire.Send(reply.bytes) || reply.then == HttpServerReply::Then::kClose) break;
      while (reply.then == HttpServerReply::Then::kHang && wire.Receive(buffer)) {
      }
    }
  }
  const MutexLock lock(mutex_);
  std::erase(sockets_, socket);
  close(socket);
}

}  // namespace muster::testing
