#pragma once

#include <atomic>
#include <stop_token>
#include <string>
#include <thread>

#include "serve/client_socket.h"
#include "serve/http_head.h"
#include "serve/tls_context.h"
#include "serve/web_server.h"

namespace muster::serve {

// One client; its requests are answered one after another in a thread of its own.
class WebConnection {
 public:
  // Takes ownership of the socket. `options` and `handler` must outlive it.
  WebConnection(int socket, std::string peer, const WebServerOptions& options, WebHandler& handler)
      : client_(socket, options.write_timeout),
        peer_(std::move(peer)),
        options_(options),
        handler_(handler) {}

  // `tls` is null for plain HTTP. Throws when there are no more threads.
  void Start(const TlsContext& tls, const std::stop_token& stop);
  void Abort() { client_.Abort(); }
  bool ended() const { return ended_; }

 private:
  using Clock = ClientSocket::Clock;

  void Run(const TlsContext& tls, const std::stop_token& stop);
  void Serve(const TlsContext& tls, const std::stop_token& stop);
  // False: it was the last request.
  bool ServeOne(const std::stop_token& stop);
  // False: no request came that could be answered.
  bool ReadHead(HeadParser& head);
  // Reads the body and answers. `keep` is cleared if the body has not been read.
  WebResponse Answer(WebRequest& request, bool& keep);

  ClientSocket client_;
  const std::string peer_;
  const WebServerOptions& options_;
  WebHandler& handler_;
  std::atomic<bool> ended_ = false;
  std::jthread thread_;
};

}  // namespace muster::serve
