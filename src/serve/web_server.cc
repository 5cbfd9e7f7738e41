#include "serve/web_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <list>
#include <thread>

#include "core/guard.h"
#include "serve/listener.h"
#include "serve/tls_context.h"
#include "serve/web_connection.h"

namespace muster::serve {
namespace {

constexpr char kBusy[] =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n"
    "Content-Type: application/json\r\nContent-Length: 58\r\n\r\n"
    "{\"error\":{\"code\":\"busy\",\"message\":\"too many connections\"}}";

class ThreadedServer final : public WebServer {
 public:
  ThreadedServer(const WebServerOptions& options, WebHandler& handler, Listener listener,
                 TlsContext tls)
      : options_(options),
        handler_(handler),
        listener_(std::move(listener)),
        tls_(std::move(tls)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        port_(listener_.port()) {}

  void Run() {
    acceptor_ = std::jthread([this] { AcceptAll(); });
  }

  ~ThreadedServer() override {
    stop_.request_stop();
    const uint64_t one = 1;
    static_cast<void>(write(wake_, &one, sizeof one));
    acceptor_ = {};
    for (WebConnection& connection : connections_) connection.Abort();
    connections_.clear();
    close(wake_);
  }

  int port() const override { return port_; }

 private:
  void AcceptAll() {
    constexpr int kPauseMs = 10;
    while (!stop_.stop_requested()) {
      pollfd waiting[] = {{listener_.socket(), POLLIN, 0}, {wake_, POLLIN, 0}};
      poll(waiting, 2, -1);
      if (stop_.stop_requested()) return;
      const Listener::Client client = listener_.Accept();
      connections_.remove_if([](const WebConnection& one) { return one.ended(); });
      if (client.socket >= 0) {
        Admit(client);
      } else if (client.error != EAGAIN && client.error != EINTR) {
        poll(&waiting[1], 1, kPauseMs);  // out of descriptors, perhaps: it stays in the backlog
      }
    }
  }

  void Admit(const Listener::Client& client) {
    if (connections_.size() >= static_cast<size_t>(options_.max_connections)) {
      Refuse(client.socket);
      return;
    }
    WebConnection& connection =
        connections_.emplace_back(client.socket, client.peer, options_, handler_);
    // Without another thread, only this client is dropped.
    const bool started =
        LogThrown("a connection", [&] { connection.Start(tls_, stop_.get_token()); });
    if (!started) connections_.pop_back();
  }

  // Sends no reply over TLS: the handshake would take time.
  void Refuse(int socket) const {
    if (tls_ == nullptr) send(socket, kBusy, sizeof kBusy - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(socket);
  }

  const WebServerOptions options_;
  WebHandler& handler_;
  const Listener listener_;
  const TlsContext tls_;
  const int wake_;
  const int port_;
  std::stop_source stop_;
  std::list<WebConnection> connections_;  // used only by the acceptor's thread while it runs
  std::jthread acceptor_;
};

}  // namespace

Result<std::unique_ptr<WebServer>> WebServer::Start(const WebServerOptions& options,
                                                    WebHandler& handler,
                                                    const std::function<void(int port)>& bound) {
  MUSTER_ASSIGN(TlsContext tls, LoadTls(options.certificate, options.key));
  MUSTER_ASSIGN(Listener listener, Listener::Open(options.address, options.port));
  auto server =
      std::make_unique<ThreadedServer>(options, handler, std::move(listener), std::move(tls));
  bound(server->port());
  server->Run();
  return std::unique_ptr<WebServer>(std::move(server));
}

}  // namespace muster::serve
