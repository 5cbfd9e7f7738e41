#include "support/fault_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "support/loopback.h"

namespace muster::testing {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

bool SendAll(int socket, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t sent = send(socket, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace

FaultProxy::FaultProxy(int target_port)
    : target_port_(target_port),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  port_ = ListenOnLoopback(listener_);
  thread_ = std::jthread([this] { Run(); });
}

FaultProxy::~FaultProxy() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  Wake();
  thread_.join();
  close(listener_);
  close(wake_fd_);
}

void FaultProxy::CutRequestAfter(size_t bytes) {
  const MutexLock lock(mutex_);
  request_bytes_left_ = bytes;
}

void FaultProxy::CutReplyAfter(size_t bytes) {
  const MutexLock lock(mutex_);
  reply_bytes_left_ = bytes;
}

void FaultProxy::CutAll() {
  {
    const MutexLock lock(mutex_);
    cut_all_ = true;
  }
  Wake();
}

void FaultProxy::Refuse(bool refuse) {
  const MutexLock lock(mutex_);
  refuse_ = refuse;
}

void FaultProxy::Forget() {
  const MutexLock lock(mutex_);
  request_bytes_left_.reset();
  reply_bytes_left_.reset();
}

void FaultProxy::Wake() { eventfd_write(wake_fd_, 1); }

void FaultProxy::Run() {
  while (true) {
    std::vector<pollfd> entries = {{listener_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      entries.push_back({pair.client, POLLIN, 0});
      entries.push_back({pair.server, POLLIN, 0});
    }
    poll(entries.data(), entries.size(), -1);
    eventfd_t signals = 0;
    eventfd_read(wake_fd_, &signals);
    bool cut_all = false;
    bool stop = false;
    {
      const MutexLock lock(mutex_);
      cut_all = std::exchange(cut_all_, false);
      stop = stop_;
    }
    size_t entry = 2;
    for (auto pair = pairs_.begin(); pair != pairs_.end(); entry += 2) {
      bool open = !cut_all && !stop;
      if (open && entries[entry].revents != 0) open = Forward(*pair, true);
      if (open && entries[entry + 1].revents != 0) open = Forward(*pair, false);
      if (open) {
        ++pair;
        continue;
      }
      close(pair->client);
      close(pair->server);
      pair = pairs_.erase(pair);
      ++ends_;
    }
    if (stop) return;
    if (entries[0].revents != 0) Accept();
  }
}

void FaultProxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  bool refuse = false;
  {
    const MutexLock lock(mutex_);
    refuse = refuse_;
  }
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(target_port_);
  if (refuse || connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(client);
    close(server);
    return;
  }
  pairs_.push_back({client, server});
}

// False: the connection has ended or must be cut.
bool FaultProxy::Forward(const Pair& pair, bool request) {
  std::array<char, 65536> bytes;
  const ssize_t received = recv(request ? pair.client : pair.server, bytes.data(), bytes.size(), 0);
  if (received <= 0) return false;
  auto count = static_cast<size_t>(received);
  bool cut = false;
  {
    const MutexLock lock(mutex_);
    std::optional<size_t>& left = request ? request_bytes_left_ : reply_bytes_left_;
    if (left) {
      cut = *left < count;
      count = std::min(count, *left);
      *left -= count;
      if (cut) left.reset();
    }
  }
  const bool sent = SendAll(request ? pair.server : pair.client, bytes.data(), count);
  if (cut) ++cuts_;
  return sent && !cut;
}

}  // namespace muster::testing
