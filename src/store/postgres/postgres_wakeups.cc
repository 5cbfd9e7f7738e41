#include "store/postgres/postgres_wakeups.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "core/backoff.h"
#include "core/guard.h"
#include "core/mutex.h"

namespace muster::store {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnnounceEvery{50};
constexpr milliseconds kPollEvery{250};  // while notifications are unavailable
constexpr milliseconds kReconnectFirst{250};
constexpr milliseconds kReconnectLast{4'000};
constexpr milliseconds kIdle{60'000};
constexpr std::chrono::hours kLongestWait{1};

}  // namespace

PostgresWakeups::PostgresWakeups(sql::PgOptions options, std::string channel, Env& env)
    : options_(std::move(options)),
      channel_(std::move(channel)),
      env_(env),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

PostgresWakeups::~PostgresWakeups() {
  thread_.request_stop();
  Signal();
  if (thread_.joinable()) thread_.join();
  close(wake_fd_);
}

void PostgresWakeups::Announce(std::string_view kind) {
  const MutexLock lock(mutex_);
  if (auto waited_for = news_.find(kind); waited_for != news_.end()) {
    ++waited_for->second;
    changed_.NotifyAll();
  }
  if (to_announce_.contains(kind)) return;
  StartOnce();
  to_announce_.emplace(kind);
  Signal();
}

void PostgresWakeups::Wait(std::string_view kind, milliseconds timeout, std::stop_token stop) {
  MutexLock lock(mutex_);
  StartOnce();
  const uint64_t& news = news_.try_emplace(std::string(kind)).first->second;
  const uint64_t seen = news;
  std::chrono::nanoseconds longest = std::min<milliseconds>(timeout, kLongestWait);
  if (!listening_) longest = std::min(longest, kPollEvery + env_.Jitter(kPollEvery));
  const bool was_listening = listening_;
  changed_.WaitFor(lock, longest, stop,
                   [&]() REQUIRES(mutex_) { return news != seen || listening_ != was_listening; });
}

void PostgresWakeups::StartOnce() {
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](std::stop_token stop) {
      LogThrown("notifications of PostgreSQL", [&] { Run(stop); });
    });
  }
}

void PostgresWakeups::Run(std::stop_token stop) {
  std::unique_ptr<sql::PgConnection> connection;
  Backoff backoff(env_, stop, {.first = kReconnectFirst, .longest = kReconnectLast});
  MonoTime next_announcement = env_.MonoNow();
  while (true) {
    if (!connection) connection = Connect();
    SetListening(connection != nullptr);
    if (!connection) {
      if (!backoff.Pause()) return;
      continue;
    }
    backoff.Reset();
    eventfd_t signals = 0;
    eventfd_read(wake_fd_, &signals);
    const bool stopping = stop.stop_requested();
    // Batches what comes in between.
    const MonoTime now = env_.MonoNow();
    const bool may_announce = stopping || now >= next_announcement;
    if (may_announce && TakeAnnouncements()) {
      next_announcement = now + kAnnounceEvery;
      if (!SendAnnouncements(*connection)) connection.reset();
    }
    if (stopping) return;
    if (!connection) continue;
    auto heard = connection->Notifications(
        may_announce ? kIdle : std::chrono::ceil<milliseconds>(next_announcement - now), wake_fd_);
    if (!heard) {
      connection.reset();
      continue;
    }
    for (const std::string& kind : *heard) NotifyLocal(kind);
  }
}

std::unique_ptr<sql::PgConnection> PostgresWakeups::Connect() {
  auto connection = sql::PgConnection::Open(options_);
  if (!connection) return nullptr;
  const sql::PgStatement listen{"", "LISTEN " + sql::PgIdentifier(channel_), false};
  if (!(*connection)->Execute(listen, sql::PgParams())) return nullptr;
  return *std::move(connection);
}

bool PostgresWakeups::TakeAnnouncements() {
  announcing_.clear();
  const MutexLock lock(mutex_);
  announcing_.swap(to_announce_);
  return !announcing_.empty();
}

bool PostgresWakeups::SendAnnouncements(sql::PgConnection& connection) {
  sql::PgArray payloads(sql::PgArray::Element::kText, announcing_.size());
  for (const std::string& kind : announcing_) payloads.Text(kind);
  static const sql::PgStatement kNotify{
      "notify", "SELECT count(pg_notify($1::text, kind)) FROM unnest($2::text[]) AS kind", false};
  return connection.Execute(kNotify, sql::PgParams().Text(channel_).Text(payloads.bytes()))
             .has_value() ||
         !connection.lost();
}

void PostgresWakeups::NotifyLocal(std::string_view kind) {
  const MutexLock lock(mutex_);
  if (auto waited_for = news_.find(kind); waited_for != news_.end()) ++waited_for->second;
  changed_.NotifyAll();
}

void PostgresWakeups::SetListening(bool listening) {
  const MutexLock lock(mutex_);
  if (listening_ == listening) return;
  listening_ = listening;
  changed_.NotifyAll();
}

void PostgresWakeups::Signal() { eventfd_write(wake_fd_, 1); }

}  // namespace muster::store
