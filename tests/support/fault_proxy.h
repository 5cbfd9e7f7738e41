#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <optional>
#include <thread>

#include "core/mutex.h"

namespace muster::testing {

// A TCP proxy on 127.0.0.1 that cuts connections on command. It forwards to `target_port` on
// 127.0.0.1. Thread-safe.
class FaultProxy {
 public:
  explicit FaultProxy(int target_port);
  ~FaultProxy();

  int port() const { return port_; }

  // Cuts the connection on which the next bytes travel from client to server once `bytes` of them
  // have been forwarded: with 0, the server sees nothing of the request.
  void CutRequestAfter(size_t bytes);

  // The same for the server's responses: with 0, the server has responded and the client never
  // learns of it.
  void CutReplyAfter(size_t bytes);

  void CutAll();                      // every connection, now
  void Refuse(bool refuse);           // new connections
  int cuts() const { return cuts_; }  // by CutRequestAfter and CutReplyAfter
  int ends() const { return ends_; }  // of connections, as seen by both sides
  void Forget();                      // cancels a pending cut

 private:
  struct Pair {
    int client;
    int server;
  };

  void Run();
  void Accept();
  bool Forward(const Pair& pair, bool request);
  void Wake();

  const int target_port_;
  int port_ = 0;
  int listener_ = -1;
  int wake_fd_ = -1;
  std::atomic<int> cuts_ = 0;
  std::atomic<int> ends_ = 0;
  Mutex mutex_;
  bool stop_ GUARDED_BY(mutex_) = false;
  bool refuse_ GUARDED_BY(mutex_) = false;
  bool cut_all_ GUARDED_BY(mutex_) = false;
  std::optional<size_t> request_bytes_left_ GUARDED_BY(mutex_);
  std::optional<size_t> reply_bytes_left_ GUARDED_BY(mutex_);
  std::list<Pair> pairs_;  // owned by the thread
  std::jthread thread_;
};

}  // namespace muster::testing
