#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"

struct pg_conn;
struct pg_result;

namespace muster::sql {

// A thin adapter over libpq: connections with bounded waits, prepared statements, values in
// PostgreSQL's binary format, and failures as a Code that says what is known about the outcome.

struct PgOptions {
  std::string uri;  // a libpq connection URI, secrets expanded
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds call_timeout{10'000};                  // of one Execute, client side
  std::vector<std::pair<std::string, std::string>> settings = {};  // for the session
};

// A statement, prepared under its name when a connection first uses it; with an empty name it is
// sent as is. `writes`: losing the connection leaves an unknown outcome.
struct PgStatement {
  std::string name;
  std::string sql;
  bool writes = true;
  bool text_results = false;  // all columns in text format, to be read with Text only
};

// The parameters of one call, in order. Text and array bytes are not copied: they must live until
// the call returns.
class PgParams {
 public:
  static constexpr size_t kMax = 64;

  PgParams() = default;
  PgParams(const PgParams&) = delete;
  PgParams& operator=(const PgParams&) = delete;

  PgParams& Text(std::string_view bytes);  // text, json, or the bytes of a PgArray
  PgParams& Int64(int64_t value);          // bigint
  PgParams& Int32(int32_t value);          // integer
  PgParams& Time(WallTime value);          // timestamptz; WallTime::min(): -infinity
  // A text literal of any type; the server infers the type from context.
  PgParams& Literal(const std::string& text);
  PgParams& Null();

 private:
  friend class PgConnection;
  static constexpr int kText = 0;
  static constexpr int kBinary = 1;

  PgParams& Add(const char* value, size_t length, int format = kBinary);

  int count_ = 0;
  std::array<const char*, kMax> values_;
  std::array<int, kMax> lengths_;
  std::array<int, kMax> formats_;
  std::array<std::array<char, 8>, kMax> numbers_;
};

// A one-dimensional array in PostgreSQL's binary format.
class PgArray {
 public:
  enum class Element : uint32_t { kBigint = 20, kInteger = 23, kText = 25, kJson = 114 };

  // Exactly `count` elements must be added.
  PgArray(Element element, size_t count, size_t expected_bytes = 0);

  void Text(std::string_view bytes);
  void Int64(int64_t value);
  void Int32(int32_t value);
  void Null();

  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The rows of one statement. Row and column must be in range; reading a number from a column of
// another width aborts.
class PgResult {
 public:
  explicit PgResult(pg_result* result) : result_(result) {}

  bool empty() const { return result_ == nullptr; }
  int rows() const;
  int columns() const;
  std::string_view ColumnName(int column) const;
  int64_t ColumnType(int column) const;  // the oid of its type
  int64_t affected() const;              // rows changed by an INSERT, UPDATE or DELETE
  bool IsNull(int row, int column) const;
  std::string_view Text(int row, int column) const;  // valid as long as this result
  int64_t Int64(int row, int column) const;
  int32_t Int32(int row, int column) const;
  WallTime Time(int row, int column) const;  // timestamptz, rounded down to milliseconds

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
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
// - The thread is interrupted (base/interrupt.h): kCancelled, and the connection is lost.
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
  using Deadline = std::chrono::steady_clock::time_point;

  explicit PgConnection(const PgOptions& options) : options_(options) {}
  Status Connect();
  Error ConnectError() const;
  bool Send(const PgCall& call);
  Status Flush(Deadline deadline);
  Status AwaitResult(Deadline deadline);
  Status AwaitInput(Deadline deadline);
  Deadline CallDeadline() const;
  Status SendSimple(const std::string& sql);  // libpq has no COPY in its pipeline mode
  Status EndSimple();
  Result<std::vector<PgResult>> Receive(std::span<const PgCall> calls, Deadline deadline);
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

// The meaning of an SQLSTATE once the server has rolled back.
Code PgCodeOf(std::string_view sqlstate);
// The server ended the transaction to break a deadlock.
bool IsPgDeadlock(const Error& error);

// `name` as an SQL identifier, in double quotes.
std::string PgIdentifier(std::string_view name);

// `text` as an SQL literal. Must not contain a NUL.
std::string PgLiteral(std::string_view text);

}  // namespace muster::sql
