#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "sql/postgres_errors.h"
#include "sql/postgres_values.h"

struct pg_conn;

namespace muster::sql {

// A thin adapter over libpq: connections with bounded waits, prepared statements, values in
// PostgreSQL's binary format, and failures as a Code that says what is known about the outcome.

struct PgOptions {
  std::string uri;  // a libpq connection URI, secrets expanded
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds call_timeout{10'000};                  // of one Execute, client side
  std::vector<std::pair<std::string, std::string>> settings = {};  // for the session
  bool replication = false;                                        // a session for PgReplication
};

// A statement, prepared under its name when a connection first uses it; with an empty name it is
// sent as is. `writes`: losing the connection leaves an unknown outcome.
struct PgStatement {
  std::string name;
  std::string sql;
  bool writes = true;
  bool text_results = false;  // all columns in text format, to be read with Text only
};

struct PgCall {
  const PgStatement& statement;
  const PgParams& params;
};

// One session with a server. Used by one thread at a time.
//
// Errors of Execute:
// - A failed transaction reported by the server is final once the server is ready again: everything
//   was rolled back, and the code is PgCodeOf(sqlstate), kUnavailable if a retry may succeed.
// - The connection is lost, or the timeout expires, before the last byte was sent: kUnavailable.
//   The server commits on that byte, so nothing was applied. Inside an earlier transaction a COMMIT
//   may come sooner: then as below.
// - The same later: kUnknownOutcome if a statement writes, else kUnavailable. A final FATAL error
//   from the server (57P01 and the like) changes nothing: it may follow a commit.
// - The thread is interrupted (core/interrupt.h): kCancelled, and the connection is lost.
class PgConnection {
 public:
  // Errors name the server and never contain a password. DNS resolution is up to the system and not
  // bounded.
  static Result<std::unique_ptr<PgConnection>> Open(const PgOptions& options);
  ~PgConnection();
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;

  // Runs the calls in one round trip and, unless a transaction is already open, as one transaction.
  // Results are in call order.
  Result<std::vector<PgResult>> Execute(std::span<const PgCall> calls);
  Result<PgResult> Execute(const PgStatement& statement, const PgParams& params);

  // No call runs past this deadline, even if its own timeout is later.
  void SetDeadline(MonoTime deadline) { deadline_ = deadline; }

  // Payloads of notifications, as soon as any arrive; none after `timeout` or when `wake_fd`
  // becomes readable.
  Result<std::vector<std::string>> Notifications(std::chrono::milliseconds timeout, int wake_fd);

  // True after a call that lost the connection.
  bool lost() const { return connection_ == nullptr; }

  // False if the connection is lost, even while idle. Does not block.
  bool Usable();

  int ServerVersion() const;  // 150004 for 15.4
  std::string_view ServerEncoding() const;
  const std::string& Place() const { return place_; }  // "PostgreSQL at host:port/database"

 private:
  friend class PgCopyIn;
  friend class PgCopyOut;
  friend class PgReplication;

  // False: the deadline passed, or the thread was interrupted.
  static bool AwaitSocket(int socket, short events, MonoTime deadline);

  explicit PgConnection(const PgOptions& options) : options_(options) {}
  Status Connect();
  Status AwaitConnected(MonoTime deadline);
  Error ConnectError() const;
  bool Send(const PgCall& call);
  Status Flush(MonoTime deadline);
  Status AwaitResult(MonoTime deadline);
  Status AwaitInput(MonoTime deadline);
  MonoTime CallDeadline() const;
  Status SendSimple(const std::string& sql);  // libpq has no COPY in its pipeline mode
  Status EndSimple();
  Result<std::vector<PgResult>> Receive(std::span<const PgCall> calls, MonoTime deadline);
  Error Lost(std::string_view why, bool sent);
  Error ServerError(const pg_result* result) const;
  void Drop();

  const PgOptions options_;
  std::string place_;
  pg_conn* connection_ = nullptr;
  MonoTime deadline_ = MonoTime::max();
  bool writing_ = false;         // a call in flight writes
  bool in_transaction_ = false;  // begun before the call in flight
  std::set<std::string, std::less<>> prepared_;
  std::vector<const PgStatement*> preparing_;  // for each command in flight; null: not a PREPARE
};

}  // namespace muster::sql
