#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/postgres.h"
#include "muster/result.h"

namespace muster {

// What the server said against a COPY; its transaction has failed with it.
struct PgRefusal {
  std::string sqlstate;
  std::string message;  // with the server's detail and the column, on one line
  size_t line = 0;      // of the rows sent, from 1; 0: the server does not say
};

// COPY … FROM STDIN, in the text format. Between Start and End nothing else may use the connection.
// Belongs inside a transaction: then a lost connection is kUnavailable and nothing was applied.
class PgCopyIn {
 public:
  // Sends `sql`, statements of which the last is the COPY, and does not wait for answers.
  static Result<PgCopyIn> Start(PgConnection& connection, const std::string& sql);

  // The answers of the statements before the COPY, in text form. An error is the server's about any
  // of them: the COPY has then ended, and the transaction, if there is one, has failed.
  Result<std::vector<PgResult>> Ready();

  // Sends whole rows or parts of them. Waits while the server takes no more.
  Status Send(std::string_view rows);

  // All rows are sent: what the server makes of them; none: it took them.
  Result<std::optional<PgRefusal>> End();

  // After End: the rows that the table got, by the server's count. Triggers may drop some.
  int64_t stored() const { return stored_; }

  // Ends the COPY without effect, and fails its transaction.
  Status Abandon(const std::string& reason);

 private:
  explicit PgCopyIn(PgConnection& connection) : connection_(&connection) {}
  Result<std::optional<PgRefusal>> Outcome();

  PgConnection* connection_;
  int64_t stored_ = 0;
};

// COPY … TO STDOUT. Rows are taken from the network as they are asked for, so that a slow reader
// slows the server down instead of filling memory.
class PgCopyOut {
 public:
  // The whole of `sql` is one COPY.
  static Result<PgCopyOut> Start(PgConnection& connection, const std::string& sql);

  PgCopyOut(PgCopyOut&& other) noexcept;
  PgCopyOut& operator=(PgCopyOut&& other) noexcept;
  ~PgCopyOut();

  // The next piece: a row in the text format, a message of the server's in the binary one. It lives
  // until the next call. None: that was all, and the connection is free again.
  Result<std::optional<std::string_view>> Next();

 private:
  explicit PgCopyOut(PgConnection& connection) : connection_(&connection) {}

  PgConnection* connection_;
  char* piece_ = nullptr;
};

}  // namespace muster
