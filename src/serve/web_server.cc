#include "serve/web_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <httplib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstring>
#include <list>
#include <thread>

#include "base/guard.h"
#include "serve/client_socket.h"

namespace muster::serve {
namespace {

using Clock = ClientSocket::Clock;

// One client, whose requests come one after another.
struct Client {
  Client(int socket, std::string address, const WebServerOptions& options)
      : wire(socket, options.write_timeout), peer(std::move(address)) {}

  ClientSocket wire;
  const std::string peer;
  WebRequest request = {};
  bool keep = true;  // another request may follow
  std::atomic<bool> done = false;
  std::jthread thread = {};
};

// The client as the HTTP library wants it.
class LibraryStream final : public httplib::Stream {
 public:
  explicit LibraryStream(Client& client) : client_(client) {}

  bool is_readable() const override { return !client_.wire.failed(); }
  bool is_writable() const override { return !client_.wire.failed(); }
  ssize_t read(char* into, size_t size) override { return client_.wire.Read(into, size); }
  ssize_t write(const char* bytes, size_t size) override {
    return client_.wire.Write(bytes, size) ? static_cast<ssize_t>(size) : -1;
  }
  void get_remote_ip_and_port(std::string& address, int& port) const override {
    address = client_.peer;
    port = 0;
  }
  void get_local_ip_and_port(std::string& address, int& port) const override {
    address.clear();
    port = 0;
  }
  // The library asks only whether select could take it, which is not used.
  socket_t socket() const override { return 0; }

 private:
  Client& client_;
};

// The client whose request this thread answers: the library's handlers are told of requests alone.
thread_local Client* current = nullptr;

WebRequest Convert(const httplib::Request& from, const std::string& peer) {
  WebRequest request{.method = from.method,
                     .path = from.target.substr(0, from.target.find('?')),
                     .query = {},
                     .headers = {},
                     .peer = peer};
  for (const auto& [name, value] : from.params) request.query.emplace_back(name, value);
  for (const auto& [name, value] : from.headers) {
    // What the library has added says nothing about the client.
    if (name.starts_with("REMOTE_") || name.starts_with("LOCAL_")) continue;
    request.headers.emplace_back(name, value);
  }
  return request;
}

class StreamOfSink final : public WebStream {
 public:
  StreamOfSink(httplib::DataSink& sink, std::stop_token stop)
      : sink_(sink), stop_(std::move(stop)) {}
  bool Write(std::string_view bytes) override {
    return !stop_.stop_requested() && sink_.write(bytes.data(), bytes.size()) &&
           sink_.is_writable();
  }
  std::stop_token stop() const override { return stop_; }

 private:
  httplib::DataSink& sink_;
  const std::stop_token stop_;
};

// The library's part: it reads the heads of requests and writes answers. Sockets are ours.
class Engine final : public httplib::Server {
 public:
  Engine(const WebServerOptions& options, WebHandler& handler, std::stop_token stop)
      : options_(options), handler_(handler), stop_(std::move(stop)) {
    svr_sock_ = 0;  // else it takes itself for one that is shutting down
    httplib::Headers headers;
    for (const auto& [name, value] : options.headers) headers.emplace(name, value);
    set_default_headers(headers);
    set_keep_alive_timeout(std::chrono::ceil<std::chrono::seconds>(options.idle_timeout).count());
    set_pre_routing_handler([this](const httplib::Request&, httplib::Response& response) {
      Send(Answer(*current), response);
      return HandlerResponse::Handled;
    });
  }

  // One request. False: it was the last.
  bool Process(Client& client) {
    current = &client;
    client.keep = false;  // after what cannot be understood nothing can
    LibraryStream stream(client);
    bool closed = false;
    const bool written = process_request(stream, false, closed, [&](httplib::Request& request) {
      client.request = Convert(request, client.peer);
      // Compressing and cutting is not the library's: it does not know what is worth it.
      request.headers.erase("Accept-Encoding");
      request.ranges.clear();
    });
    return written && !closed && client.keep;
  }

 private:
  WebResponse Answer(Client& client) {
    WebRequest& request = client.request;
    const bool has_body =
        request.HasHeader("Content-Length") || request.HasHeader("Transfer-Encoding");
    // A body that is not read would be taken for the next request.
    client.keep = !has_body;
    size_t length = 0;
    if (has_body) {
      const auto given = request.Header("Content-Length");
      if (request.HasHeader("Transfer-Encoding") || !given) {
        return WebResponse::OfProblem(411, "length_required",
                                      "a body needs one Content-Length and nothing else");
      }
      const char* end = given->data() + given->size();
      const auto parsed = std::from_chars(given->data(), end, length);
      if (parsed.ec == std::errc::result_out_of_range || length > options_.max_body_bytes) {
        return WebResponse::OfProblem(
            413, "too_large",
            "a body may have " + std::to_string(options_.max_body_bytes) + " bytes");
      }
      if (parsed.ec != std::errc() || parsed.ptr != end) {
        return WebResponse::OfProblem(400, "invalid", "Content-Length is no number");
      }
    }
    if (auto refusal = handler_.Refuse(request)) return *std::move(refusal);
    if (has_body) {
      if (!client.wire.ReadAll(request.body, length)) {
        return WebResponse::OfProblem(408, "timeout", "the body did not come in time");
      }
      client.keep = true;
    }
    return handler_.Handle(request);
  }

  void Send(WebResponse answer, httplib::Response& response) const {
    response.status = answer.status;
    for (const auto& [name, value] : answer.headers) response.set_header(name, value);
    if (!current->keep) response.set_header("Connection", "close");
    if (!answer.stream) {
      if (answer.body.empty()) return;
      response.body = std::move(answer.body);
      response.set_header("Content-Type", answer.content_type);
      return;
    }
    current->keep = false;
    response.set_chunked_content_provider(
        answer.content_type,
        [stop = stop_, stream = std::move(answer.stream)](size_t, httplib::DataSink& sink) {
          StreamOfSink out(sink, stop);
          stream(out);
          sink.done();
          return true;
        });
  }

  const WebServerOptions& options_;
  WebHandler& handler_;
  const std::stop_token stop_;
};

struct FreeTls {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, FreeTls>;

Result<TlsContext> LoadTls(const WebServerOptions& options) {
  if (options.certificate.empty()) return TlsContext();
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return Error{Code::kInternal, "TLS does not start"};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // The buffer of a repeated write may have moved.
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.certificate.c_str()) != 1) {
    return Error{Code::kInvalid, options.certificate + " holds no certificate",
                 "give a PEM file, the server's own certificate first"};
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), options.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Error{Code::kInvalid, options.key + " is not the key of " + options.certificate};
  }
  return context;
}

// Both kinds of internet address, as the system calls want them.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  static Result<SocketAddress> Parse(const std::string& address, int port) {
    SocketAddress parsed;
    auto* v4 = reinterpret_cast<sockaddr_in*>(&parsed.storage);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&parsed.storage);
    if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
      v4->sin_family = AF_INET;
      v4->sin_port = htons(static_cast<uint16_t>(port));
      parsed.size = sizeof(sockaddr_in);
    } else if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(static_cast<uint16_t>(port));
      parsed.size = sizeof(sockaddr_in6);
    } else {
      return Error{Code::kInvalid, "'" + address + "' is no internet address",
                   "give one in numbers: 127.0.0.1, ::1, 0.0.0.0"};
    }
    return parsed;
  }

  std::string Text() const {
    char text[INET6_ADDRSTRLEN] = {};
    const void* bytes =
        storage.ss_family == AF_INET
            ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr)
            : &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
    inet_ntop(storage.ss_family, bytes, text, sizeof text);
    return text;
  }

  int port() const {
    return ntohs(storage.ss_family == AF_INET
                     ? reinterpret_cast<const sockaddr_in*>(&storage)->sin_port
                     : reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  }
};

Result<int> Listen(const WebServerOptions& options) {
  MUSTER_ASSIGN(const SocketAddress address, SocketAddress::Parse(options.address, options.port));
  const int listener =
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
      listen(listener, 128) != 0) {
    const std::string reason = std::strerror(errno);
    close(listener);
    return Error{Code::kUnavailable,
                 "cannot listen on " + options.address + " port " + std::to_string(options.port) +
                     ": " + reason,
                 "choose another with --port, or 0 for a free one"};
  }
  return listener;
}

class ThreadedServer final : public WebServer {
 public:
  ThreadedServer(const WebServerOptions& options, WebHandler& handler, int listener, TlsContext tls)
      : options_(options),
        listener_(listener),
        tls_(std::move(tls)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    SocketAddress address;
    address.size = sizeof address.storage;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address.storage), &address.size);
    port_ = address.port();
    // The library ignores SIGPIPE for the whole process, and children would inherit that.
    struct sigaction before {};
    sigaction(SIGPIPE, nullptr, &before);
    engine_ = std::make_unique<Engine>(options_, handler, stop_.get_token());
    sigaction(SIGPIPE, &before, nullptr);
  }

  void Run() {
    acceptor_ = std::jthread([this] { Accept(); });
  }

  ~ThreadedServer() override {
    stop_.request_stop();
    const uint64_t one = 1;
    static_cast<void>(write(wake_, &one, sizeof one));
    acceptor_ = {};
    for (Client& client : clients_) client.wire.Abort();
    clients_.clear();
    close(listener_);
    close(wake_);
  }

  int port() const override { return port_; }

 private:
  void Accept() {
    while (!stop_.stop_requested()) {
      pollfd waiting[] = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
      poll(waiting, 2, -1);
      if (stop_.stop_requested()) return;
      SocketAddress peer;
      peer.size = sizeof peer.storage;
      const int socket = accept4(listener_, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size,
                                 SOCK_CLOEXEC | SOCK_NONBLOCK);
      clients_.remove_if([](const Client& client) { return client.done.load(); });
      if (socket < 0) {
        // Out of descriptors, say: whoever waits is still there in a moment.
        if (errno != EAGAIN && errno != EINTR) usleep(10'000);
        continue;
      }
      const int on = 1;
      setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      if (clients_.size() >= static_cast<size_t>(options_.max_connections)) {
        TurnAway(socket);
        continue;
      }
      Client& client = clients_.emplace_back(socket, peer.Text(), options_);
      // There may be no more threads: then this client is turned away, and the others stay.
      const bool started = LogThrown("a connection", [&] {
        client.thread = std::jthread([this, &client] { Serve(client); });
      });
      if (!started) clients_.pop_back();
    }
  }

  // Without a word where that would be a wait.
  void TurnAway(int socket) const {
    static constexpr char kBusy[] =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n"
        "Content-Type: application/json\r\nContent-Length: 68\r\n\r\n"
        "{\"error\":{\"code\":\"busy\",\"message\":\"there are too many connections\"}}";
    if (tls_ == nullptr) send(socket, kBusy, sizeof kBusy - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(socket);
  }

  void Serve(Client& client) {
    // TLS writes without MSG_NOSIGNAL.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    LogThrown("a connection", [&] { Answer(client); });
    client.wire.Finish();
    client.done = true;
  }

  // One request after another, until the client goes or has to.
  void Answer(Client& client) {
    if (tls_ != nullptr &&
        !client.wire.StartTls(tls_.get(), Clock::now() + options_.request_timeout)) {
      return;
    }
    while (!stop_.stop_requested() &&
           client.wire.AwaitRequest(Clock::now() + options_.idle_timeout)) {
      client.wire.Limit(options_.max_head_bytes + options_.max_body_bytes,
                        Clock::now() + options_.request_timeout);
      if (!engine_->Process(client)) return;
    }
  }

  const WebServerOptions options_;
  const int listener_;
  const TlsContext tls_;
  const int wake_;
  int port_ = 0;
  std::stop_source stop_;
  std::unique_ptr<Engine> engine_;
  std::list<Client> clients_;  // of the acceptor's thread, until that has ended
  std::jthread acceptor_;
};

}  // namespace

Result<std::unique_ptr<WebServer>> WebServer::Start(const WebServerOptions& options,
                                                    WebHandler& handler,
                                                    const std::function<void(int port)>& bound) {
  MUSTER_ASSIGN(TlsContext tls, LoadTls(options));
  MUSTER_ASSIGN(const int listener, Listen(options));
  auto server = std::make_unique<ThreadedServer>(options, handler, listener, std::move(tls));
  bound(server->port());
  server->Run();
  return std::unique_ptr<WebServer>(std::move(server));
}

}  // namespace muster::serve
