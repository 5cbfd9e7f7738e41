#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster::sql {

// What an SQLSTATE means once the server has rolled back.
Code PgCodeOf(std::string_view sqlstate);

// What an operator can do about it; empty if there is no general advice.
std::string PgHintFor(std::string_view sqlstate);

// The server aborted the transaction to break a deadlock.
bool IsPgDeadlock(const Error& error);

// A lock was not granted within lock_timeout.
bool IsPgLockTimeout(const Error& error);

// The server ended a statement that took longer than statement_timeout.
bool IsPgStatementTimeout(const Error& error);

// libpq reports the SQLSTATE of a refused connection only in its verbose message: `connection to
// server at ... failed: FATAL:  28P01: password authentication failed ...`.
struct PgConnectRefusal {
  std::string sqlstate;
  std::string message;
};
std::optional<PgConnectRefusal> ParsePgConnectRefusal(std::string_view text);

// `text` with each run of white space as one space, and none at the end.
std::string PgOneLine(std::string_view text);

}  // namespace muster::sql
