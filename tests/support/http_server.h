#pragma once

#include <functional>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "support/tls_identity.h"

namespace muster::testing {

struct HttpServerRequest {
  std::string method;
  std::string target;  // path and query, as sent
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  int connection = 0;  // counted from 1, in order of arrival

  std::string Header(const std::string& name) const;  // "" if missing
};

// The bytes to send, and what happens to the connection afterwards.
struct HttpServerReply {
  enum class Then { kKeep, kClose, kHang };  // kHang: neither answers nor hangs up
  std::string bytes;
  Then then = Then::kKeep;
};

// A well-formed response with Content-Length.
HttpServerReply Answer(int status, const std::string& body,
                       const std::vector<std::pair<std::string, std::string>>& headers = {});
HttpServerReply CloseWithoutAnswer();
HttpServerReply CloseMidBody();
HttpServerReply NeverAnswer();

// A scriptable HTTP/1.1 server on a free port of 127.0.0.1, correct or not. The handler runs on its
// connection's thread. Closes all connections when destroyed.
class HttpServer {
 public:
  using Handler = std::function<HttpServerReply(const HttpServerRequest&)>;

  explicit HttpServer(Handler handler, const TlsIdentity* tls = nullptr);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  std::string Url(const std::string& target = "/") const;

  // All requests, in order; also those without a response.
  std::vector<HttpServerRequest> requests() const;

 private:
  void Accept();
  void Serve(int socket, int connection);

  const Handler handler_;
  const TlsIdentity* const tls_;
  int listener_ = -1;
  int port_ = 0;
  mutable Mutex mutex_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<int> sockets_ GUARDED_BY(mutex_);
  std::vector<HttpServerRequest> requests_ GUARDED_BY(mutex_);
  std::list<std::jthread> connections_;  // of the acceptor, and of the destructor after it
  std::jthread acceptor_;
};

}  // namespace muster::testing
