#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/postgres.h"
#include "muster/env.h"

namespace muster {

// Tells the processes that share a store that something became due, by LISTEN/NOTIFY. All of it is
// a hint: announcements are gathered, since a NOTIFY in every transaction would halve the commit
// rate of the whole server, and are lost without a word when the server cannot be reached.
//
// Works in a thread with a connection of its own, both from the first use on. Thread-safe.
class PostgresWakeups {
 public:
  PostgresWakeups(PgOptions options, std::string channel, Env& env);
  ~PostgresWakeups();  // sends what is waiting; blocks for a call's time-out at most

  // Wakes those that wait for this kind, here at once and elsewhere soon. Does not block.
  void Announce(std::string_view kind);

  // Returns when the kind was announced, after `timeout`, or when a stop is requested. Earlier, for
  // the caller to look for himself, while announcements cannot be heard.
  void Wait(std::string_view kind, std::chrono::milliseconds timeout, std::stop_token stop);

 private:
  void StartOnce();  // with mutex_ held
  void Run(std::stop_token stop);
  std::unique_ptr<PgConnection> Connect();
  bool TakeAnnouncements();                          // true: there are some
  bool SendAnnouncements(PgConnection& connection);  // false: the connection is lost
  void NotifyLocal(std::string_view kind);
  void SetListening(bool listening);
  void Signal();

  const PgOptions options_;
  const std::string channel_;
  Env& env_;
  const int wake_fd_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool listening_ = false;
  std::map<std::string, uint64_t, std::less<>> news_;  // announcements of the kinds waited for
  std::set<std::string, std::less<>> to_announce_;

  std::set<std::string, std::less<>> announcing_;  // the thread's own
  std::jthread thread_;                            // last, so that it ends first
};

}  // namespace muster
