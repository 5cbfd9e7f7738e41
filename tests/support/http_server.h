#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/tls_identity.h"

namespace muster::testing {

struct HttpServerRequest {
  std::string method;
  std::string target;  // path and query, as sent
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  int connection = 0;  // counted from 1, in the order they came

  std::string Header(const std::string& name) const;  // "" if there is none
};

// The bytes that go back, and what happens to the connection then.
struct HttpServerReply {
  enum class Then { kKeep, kClose, kHang };  // kHang: neither answers nor hangs up
  std::string bytes;
  Then then = Then::kKeep;
};

// A well-formed answer with Content-Length.
HttpServerReply Answer(int status, const std::string& body,
                       const std::vector<std::pair<std::string, std::string>>& headers = {});
HttpServerReply CloseWithoutAnswer();
HttpServerReply CloseMidBody();
HttpServerReply NeverAnswer();

// An HTTP/1.1 server on a free port of 127.0.0.1 that does what the test wants, right or wrong. The
// handler runs in the thread of its connection. Gone, with all connections, when the object is.
class HttpServer {
 public:
  using Handler = std::function<HttpServerReply(const HttpServerRequest&)>;

  explicit HttpServer(Handler handler, const TlsIdentity* tls = nullptr);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  std::string Url(const std::string& target = "/") const;

  // All that have come, in order; also those that got no answer.
  std::vector<HttpServerRequest> requests() const;

 private:
  void Accept();
  void Serve(int socket, int connection);

  const Handler handler_;
  const TlsIdentity* const tls_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  bool stopping_ = false;
  std::vector<int> sockets_;
  std::vector<HttpServerRequest> requests_;
  std::list<std::jthread> connections_;
  std::jthread acceptor_;
};

}  // namespace muster::testing
