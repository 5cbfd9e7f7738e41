#pragma once

#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "core/condition.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "sql/postgres.h"

namespace muster::store {

// Notifies the processes sharing a store that something became due, by LISTEN/NOTIFY. Only a hint:
// announcements are batched, since a NOTIFY in every transaction would halve the whole server's
// commit rate, and silently lost when the server is unreachable.
//
// Runs on its own thread and connection, both started on first use. Thread-safe.
class PostgresWakeups {
 public:
  PostgresWakeups(sql::PgOptions options, std::string channel, Env& env);
  ~PostgresWakeups();  // flushes; blocks for at most a call's timeout

  // Wakes waiters for this kind, locally at once and elsewhere soon. Does not block.
  void Announce(std::string_view kind);

  // Returns when the kind was announced, after `timeout`, or on a stop request. Earlier, so that
  // the caller polls, while notifications are unavailable.
  void Wait(std::string_view kind, std::chrono::milliseconds timeout, std::stop_token stop);

 private:
  void StartOnce() REQUIRES(mutex_);
  void Run(std::stop_token stop);
  std::unique_ptr<sql::PgConnection> Connect();
  bool TakeAnnouncements();                               // true: there are some
  bool SendAnnouncements(sql::PgConnection& connection);  // false: the connection is lost
  void NotifyLocal(std::string_view kind);
  void SetListening(bool listening);
  void Signal();

  const sql::PgOptions options_;
  const std::string channel_;
  Env& env_;
  const int wake_fd_;

  Mutex mutex_;
  Condition changed_{env_};
  bool listening_ GUARDED_BY(mutex_) = false;
  // Announcements by the kinds that are waited for.
  std::map<std::string, uint64_t, std::less<>> news_ GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> to_announce_ GUARDED_BY(mutex_);

  std::set<std::string, std::less<>> announcing_;  // owned by the thread
  std::jthread thread_ GUARDED_BY(mutex_);         // last, so that it ends first
};

}  // namespace muster::store
