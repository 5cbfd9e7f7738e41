#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>

struct ssl_st;
struct ssl_ctx_st;

namespace muster::serve {

// A client's connection, plain or with TLS, with limits on the time and bytes of a request and on
// the time of a write. Owns the socket, which is non-blocking. Used by one thread; only Abort may
// be called from another. After a failure everything fails.
class ClientSocket {
 public:
  using Clock = std::chrono::steady_clock;

  ClientSocket(int socket, std::chrono::milliseconds write_timeout);
  ~ClientSocket();
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  // The TLS handshake.
  bool StartTls(ssl_ctx_st* context, Clock::time_point deadline);

  // Waits for the first byte of a request.
  bool AwaitRequest(Clock::time_point deadline);

  // From now on no more than this is read, and not after the deadline.
  void Limit(size_t bytes, Clock::time_point deadline);
  // As Limit, with the same deadline.
  void Allow(size_t bytes) { allowed_ = bytes; }

  // The next bytes, at least one, which Skip takes; empty: failed, or the limit is reached.
  std::string_view Peek();
  void Skip(size_t bytes);
  bool ReadAll(std::string& into, size_t bytes);
  bool Write(const char* bytes, size_t size);

  // Ends the connection so that the client gets what was written, also where it is still sending.
  void Finish();

  void Abort();
  bool failed() const { return failed_; }

 private:
  bool Fill(Clock::time_point deadline);
  bool Await(short events, Clock::time_point deadline);

  const int socket_;
  const std::chrono::milliseconds write_timeout_;
  ssl_st* tls_ = nullptr;
  bool failed_ = false;
  size_t allowed_ = 0;
  Clock::time_point deadline_{};
  std::array<char, 8192> buffer_{};
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace muster::serve
