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

namespace muster {

// A thin adapter over libpq: connections whose every wait is bounded, prepared statements, values
// in PostgreSQL's binary format, and failures as a Code that says what is known about the outcome.

struct PgOptions {
  std::string uri;  // a libpq connection URI, secrets expanded
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds call_timeout{10'000};  // of one Execute, on the client's side
  std::vector<std::pair<std::string, std::string>> settings = {};  // for the session
};

// A statement that is prepared when a connection first uses it, under its name; with an empty name
// it is sent as it stands. `writes`: a connection lost on the way leaves an unknown outcome.
struct PgStatement {
  std::string name;
  std::string sql;
  bool writes = true;
  bool text_results = false;  // every column as the server prints it, for Text alone
};

// The parameters of one call, in order. Text and array bytes are referred to, not copied: they must
// live until the call has returned.
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
  // A value of any type, as a person would write it; the server makes of it what the place takes.
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

// The rows of one statement. Row and column must lie within; a number read from a column of another
// width ends the program.
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
  std::string_view Text(int row, int column) const;  // lives as long as this result
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
// - The server's word about a failed transaction is final once the server is ready again: all was
//   rolled back, and the code is PgCodeOf(sqlstate), kUnavailable for what may succeed when
//   repeated.
// - The connection is lost, or the time is up, before the last byte was handed to the network:
//   kUnavailable. The server commits on that byte, so nothing was applied. Inside a transaction
//   that was begun before, a COMMIT may stand earlier: there it is as below.
// - The same later: kUnknownOutcome if a statement writes, else kUnavailable. That the server
//   said goodbye with a FATAL error (57P01 and the like) changes nothing: it may do so after a
//   commit.
// - The thread is interrupted (base/interrupt.h): kCancelled, and the connection is lost.
class PgConnection {
 public:
  // Errors name the server and never hold a password. Resolving the host's name is the system's
  // business and takes the time it takes.
  static Result<std::unique_ptr<PgConnection>> Open(const PgOptions& options);
  ~PgConnection();
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;

  // Runs the calls in one round trip and, unless a transaction was begun before, as one
  // transaction. Answers in the order of the calls.
  Result<std::vector<PgResult>> Execute(std::span<const PgCall> calls);
  Result<PgResult> Execute(const PgStatement& statement, const PgParams& params);

  // No call goes on beyond this moment, even if its own time-out is later.
  void SetDeadline(MonoTime deadline) { deadline_ = deadline; }

  // Payloads of notifications, as soon as there are some; none after `timeout` or when `wake_fd`
  // becomes readable.
  Result<std::vector<std::string>> Notifications(std::chrono::milliseconds timeout, int wake_fd);

  // True after a call that lost the connection.
  bool lost() const { return connection_ == nullptr; }

  // False if the connection is lost, also if that happened while it was idle. Does not block.
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
  bool writing_ = false;         // some call under way writes
  bool in_transaction_ = false;  // it was begun before the call under way
  std::set<std::string, std::less<>> prepared_;
  std::vector<const PgStatement*> preparing_;  // for each command under way; null: not a PREPARE
};

// What an SQLSTATE means when the server reports that it rolled back.
Code PgCodeOf(std::string_view sqlstate);
// The server ended a transaction that waited for another which waited for it.
bool IsPgDeadlock(const Error& error);

// `name` as an SQL identifier, in double quotes.
std::string PgIdentifier(std::string_view name);

// `text` as an SQL literal. It must not hold a NUL.
std::string PgLiteral(std::string_view text);

}  // namespace muster
