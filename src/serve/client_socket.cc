#include "serve/client_socket.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster::serve {

ClientSocket::ClientSocket(int socket, std::chrono::milliseconds write_timeout)
    : socket_(socket), write_timeout_(write_timeout) {}

ClientSocket::~ClientSocket() {
  SSL_free(tls_);
  close(socket_);
}

bool ClientSocket::Await(short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{socket_, events, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool ClientSocket::StartTls(ssl_ctx_st* context, Clock::time_point deadline) {
  tls_ = SSL_new(context);
  if (tls_ == nullptr || SSL_set_fd(tls_, socket_) != 1) return false;
  while (true) {
    const int done = SSL_accept(tls_);
    if (done == 1) return true;
    const int wants = SSL_get_error(tls_, done);
    const bool waits = wants == SSL_ERROR_WANT_READ || wants == SSL_ERROR_WANT_WRITE;
    if (!waits || !Await(wants == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline)) {
      failed_ = true;
      return false;
    }
  }
}

bool ClientSocket::Fill(Clock::time_point deadline) {
  while (!failed_) {
    ssize_t got = 0;
    short wants = POLLIN;
    if (tls_ != nullptr) {
      got = SSL_read(tls_, buffer_.data(), static_cast<int>(buffer_.size()));
      if (got <= 0) {
        const int error = SSL_get_error(tls_, static_cast<int>(got));
        if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) break;
        if (error == SSL_ERROR_WANT_WRITE) wants = POLLOUT;
      }
    } else {
      got = recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (got == 0) break;
      if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) break;
    }
    if (got > 0) {
      begin_ = 0;
      end_ = static_cast<size_t>(got);
      return true;
    }
    if (!Await(wants, deadline)) break;
  }
  failed_ = true;
  return false;
}

bool ClientSocket::AwaitRequest(Clock::time_point deadline) {
  return begin_ < end_ || Fill(deadline);
}

void ClientSocket::Limit(size_t bytes, Clock::time_point deadline) {
  allowed_ = bytes;
  deadline_ = deadline;
}

void ClientSocket::Finish() {
  if (tls_ != nullptr && !failed_) SSL_shutdown(tls_);
  shutdown(socket_, SHUT_WR);
  // Closing with unread bytes would reset the connection and lose the answer.
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(1);
  for (int i = 0; i < 128 && Await(POLLIN, deadline); ++i) {
    const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
  }
}

void ClientSocket::Abort() { shutdown(socket_, SHUT_RDWR); }

std::string_view ClientSocket::Peek() {
  if (begin_ == end_ && !Fill(deadline_)) return {};
  const size_t size = std::min(end_ - begin_, allowed_);
  if (size == 0) failed_ = true;
  return {buffer_.data() + begin_, size};
}

void ClientSocket::Skip(size_t bytes) {
  begin_ += bytes;
  allowed_ -= bytes;
}

bool ClientSocket::ReadAll(std::string& into, size_t bytes) {
  into.clear();
  while (into.size() < bytes) {
    const std::string_view next = Peek().substr(0, bytes - into.size());
    if (next.empty()) return false;
    into += next;
    Skip(next.size());
  }
  return true;
}

bool ClientSocket::Write(const char* bytes, size_t size) {
  const Clock::time_point deadline = Clock::now() + write_timeout_;
  size_t done = 0;
  while (done < size && !failed_) {
    ssize_t sent = 0;
    short wants = POLLOUT;
    if (tls_ != nullptr) {
      const auto piece = static_cast<int>(std::min<size_t>(size - done, 1 << 20));
      sent = SSL_write(tls_, bytes + done, piece);
      if (sent <= 0) {
        const int error = SSL_get_error(tls_, static_cast<int>(sent));
        failed_ = error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
        if (error == SSL_ERROR_WANT_READ) wants = POLLIN;
      }
    } else {
      sent = send(socket_, bytes + done, size - done, MSG_NOSIGNAL);
      failed_ = sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
    }
    if (sent > 0) {
      done += static_cast<size_t>(sent);
    } else if (!failed_ && !Await(wants, deadline)) {
      failed_ = true;
    }
  }
  return !failed_;
}

}  // namespace muster::serve
