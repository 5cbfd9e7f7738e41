#include "serve/served.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>

namespace muster::testing {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string After(const std::string& text, const std::string& mark) {
  const size_t start = text.find(mark);
  if (start == text.npos) return "";
  const size_t begin = start + mark.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

Served::Served(const std::vector<std::string>& arguments, const std::vector<std::string>& settings)
    : arguments_(arguments), settings_(settings), process_("serve"), port_(FreePort()) {
  Start();
  const std::string tokens = ReadAll(folder() + "/tokens");
  operator_ = After(tokens, "operator ");
  viewer_ = After(tokens, "viewer ");
}

void Served::Start() {
  std::vector<std::string> command{MUSTER_PROGRAM,   "serve",
                                   "--store",        store_url(),
                                   "--port",         std::to_string(port_),
                                   "--token-file",   folder() + "/tokens",
                                   "--audit-log",    folder() + "/audit",
                                   "--dead-letters", folder()};
  command.insert(command.end(), arguments_.begin(), arguments_.end());
  process_.Start(command, settings_);
  process_.AwaitReady([&] {
    const auto health = client_.Send({.url = Url("/healthz")});
    return health && health->status == 200;
  });
}

std::string Served::Url(const std::string& path) const {
  const bool tls =
      std::find(arguments_.begin(), arguments_.end(), "--tls-cert") != arguments_.end();
  return (tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_) + path;
}

std::string Served::login_link() const { return After(process_.Log(), "log in with: "); }

std::string Served::cookie() {
  const net::HttpResponse login = Send("GET", "/login?token=" + operator_);
  const std::string cookie(login.Header("Set-Cookie").value_or(""));
  return cookie.substr(0, cookie.find(';'));
}

net::HttpResponse Served::Send(const std::string& method, const std::string& path,
                               net::HttpHeaders headers, const std::string& body) {
  auto response = client_.Send(
      {.method = method, .url = Url(path), .headers = std::move(headers), .body = body});
  if (!response) throw std::runtime_error(response.error().ToString());
  return *std::move(response);
}

net::HttpResponse Served::Get(const std::string& path) {
  return Send("GET", path, {{"Authorization", "Bearer " + operator_}});
}

net::HttpResponse Served::Post(const std::string& path, const std::string& body) {
  return Send("POST", path,
              {{"Authorization", "Bearer " + operator_}, {"Content-Type", "application/json"}},
              body);
}

RawConnection::RawConnection(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect");
  }
}

RawConnection::~RawConnection() { close(socket_); }

bool RawConnection::Send(const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = send(socket_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    done += static_cast<size_t>(sent);
  }
  return true;
}

std::string RawConnection::ReadUntil(const std::string& mark, int seconds) {
  std::string text;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (mark.empty() || text.find(mark) == text.npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd waiting{socket_, POLLIN, 0};
    if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) <= 0) break;
    char buffer[65536];
    const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
    if (got <= 0) {
      closed_ = true;
      break;
    }
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace muster::testing
