#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "sql/postgres.h"

namespace muster::sql {

// The server's rejection of a COPY; its transaction has failed.
struct PgRefusal {
  std::string sqlstate;
  std::string message;  // with the server's detail and the column, on one line
  size_t line = 0;      // of the rows sent, from 1; 0: unknown
};

// COPY … FROM STDIN in text format. Between Start and End nothing else may use the connection. Run
// it in a transaction: then a lost connection is kUnavailable and nothing was applied.
class PgCopyIn {
 public:
  // Sends `sql`, whose last statement is the COPY, without waiting for results.
  static Result<PgCopyIn> Start(PgConnection& connection, const std::string& sql);

  // The results of the statements before the COPY, in text format. An error is the server's about
  // any of them: the COPY has ended, and the transaction, if any, has failed.
  Result<std::vector<PgResult>> Ready();

  // Sends rows or parts of them. Blocks while the server does not read.
  Status Send(std::string_view rows);

  // Ends the data: the server's rejection; none: accepted.
  Result<std::optional<PgRefusal>> End();

  // After End: the rows stored, by the server's count. Triggers may drop some.
  int64_t stored() const { return stored_; }

  // Aborts the COPY and fails its transaction.
  Status Abandon(const std::string& reason);

 private:
  explicit PgCopyIn(PgConnection& connection) : connection_(&connection) {}
  Result<std::optional<PgRefusal>> Outcome();

  PgConnection* connection_;
  int64_t stored_ = 0;
};

// COPY … TO STDOUT. Rows are read from the network on demand, so that a slow reader slows the
// server down instead of filling memory.
class PgCopyOut {
 public:
  // `sql` must be a single COPY.
  static Result<PgCopyOut> Start(PgConnection& connection, const std::string& sql);

  PgCopyOut(PgCopyOut&& other) noexcept;
  PgCopyOut& operator=(PgCopyOut&& other) noexcept;
  ~PgCopyOut();

  // The next piece: a row in text format, a server message in binary format. Valid until the next
  // call. None: the end, and the connection is free again.
  Result<std::optional<std::string_view>> Next();

 private:
  explicit PgCopyOut(PgConnection& connection) : connection_(&connection) {}

  PgConnection* connection_;
  char* piece_ = nullptr;
};

}  // namespace muster::sql
