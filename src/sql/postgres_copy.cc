#include "sql/postgres_copy.h"

#include <postgresql/libpq-fe.h>

#include <charconv>
#include <utility>

namespace muster::sql {
namespace {

std::string Field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

// "COPY orders, line 17, column price: …": the server's error context.
size_t LineOf(std::string_view context) {
  static constexpr std::string_view kMark = ", line ";
  const size_t at = context.find(kMark);
  if (!context.starts_with("COPY ") || at == std::string_view::npos) return 0;
  size_t line = 0;
  std::from_chars(context.data() + at + kMark.size(), context.data() + context.size(), line);
  return line;
}

// "column price" of the same, without the value, which may be long.
std::string ColumnOf(std::string_view context) {
  static constexpr std::string_view kMark = ", column ";
  const size_t at = context.find(kMark);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = context.substr(at + kMark.size());
  return std::string(rest.substr(0, rest.find(": ")));
}

PgRefusal RefusalOf(const PGresult* result) {
  const std::string context = Field(result, PG_DIAG_CONTEXT);
  PgRefusal refusal{.sqlstate = Field(result, PG_DIAG_SQLSTATE),
                    .message = Field(result, PG_DIAG_MESSAGE_PRIMARY),
                    .line = LineOf(context)};
  if (const std::string detail = Field(result, PG_DIAG_MESSAGE_DETAIL); !detail.empty()) {
    refusal.message += ": " + detail;
  }
  if (const std::string column = ColumnOf(context); !column.empty()) {
    refusal.message += ", column " + column;
  }
  refusal.message = PgOneLine(refusal.message);
  return refusal;
}

}  // namespace

Result<PgCopyIn> PgCopyIn::Start(PgConnection& connection, const std::string& sql) {
  MUSTER_TRY(connection.SendSimple(sql));
  return PgCopyIn(connection);
}

Result<std::vector<PgResult>> PgCopyIn::Ready() {
  PgConnection& connection = *connection_;
  std::vector<PgResult> answers;
  std::optional<Error> error;
  while (true) {
    MUSTER_TRY(connection.AwaitResult(connection.CallDeadline()));
    PGresult* raw = PQgetResult(connection.connection_);
    if (raw == nullptr) break;
    PgResult result(raw);
    const ExecStatusType status = PQresultStatus(raw);
    if (status == PGRES_COPY_IN) return answers;
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
      answers.push_back(std::move(result));
    } else if (!error) {
      error = connection.ServerError(raw);
    }
  }
  if (PQstatus(connection.connection_) == CONNECTION_BAD) {
    return connection.Lost(error ? error->message : PQerrorMessage(connection.connection_), false);
  }
  MUSTER_TRY(connection.EndSimple());
  if (error) return *std::move(error);
  return Error{Code::kInternal, connection.Place() + ": there was no COPY among the statements"};
}

Status PgCopyIn::Send(std::string_view rows) {
  PgConnection& connection = *connection_;
  if (PQputCopyData(connection.connection_, rows.data(), static_cast<int>(rows.size())) != 1) {
    return connection.Lost(PQerrorMessage(connection.connection_), false);
  }
  return connection.Flush(connection.CallDeadline());
}

Result<std::optional<PgRefusal>> PgCopyIn::End() {
  PgConnection& connection = *connection_;
  if (PQputCopyEnd(connection.connection_, nullptr) != 1) {
    return connection.Lost(PQerrorMessage(connection.connection_), false);
  }
  return Outcome();
}

Status PgCopyIn::Abandon(const std::string& reason) {
  PgConnection& connection = *connection_;
  if (PQputCopyEnd(connection.connection_, reason.c_str()) != 1) {
    return connection.Lost(PQerrorMessage(connection.connection_), false);
  }
  MUSTER_TRY(Outcome());
  return {};
}

Result<std::optional<PgRefusal>> PgCopyIn::Outcome() {
  PgConnection& connection = *connection_;
  MUSTER_TRY(connection.Flush(connection.CallDeadline()));
  std::optional<PgRefusal> refusal;
  while (true) {
    MUSTER_TRY(connection.AwaitResult(connection.CallDeadline()));
    PGresult* raw = PQgetResult(connection.connection_);
    if (raw == nullptr) break;
    const PgResult result(raw);
    if (PQresultStatus(raw) == PGRES_COMMAND_OK) {
      stored_ = result.affected();
    } else if (!refusal) {
      refusal = RefusalOf(raw);
    }
  }
  // A server that shuts down first reports an error.
  if (PQstatus(connection.connection_) == CONNECTION_BAD) {
    return connection.Lost(refusal ? refusal->message : PQerrorMessage(connection.connection_),
                           false);
  }
  MUSTER_TRY(connection.EndSimple());
  return refusal;
}

Result<PgCopyOut> PgCopyOut::Start(PgConnection& connection, const std::string& sql) {
  MUSTER_TRY(connection.SendSimple(sql));
  MUSTER_TRY(connection.AwaitResult(connection.CallDeadline()));
  PGresult* raw = PQgetResult(connection.connection_);
  const PgResult result(raw);
  if (PQresultStatus(raw) == PGRES_COPY_OUT) return PgCopyOut(connection);
  Error error = connection.ServerError(raw);
  while (true) {
    MUSTER_TRY(connection.AwaitResult(connection.CallDeadline()));
    const PgResult rest(PQgetResult(connection.connection_));
    if (rest.empty()) break;
  }
  if (PQstatus(connection.connection_) == CONNECTION_BAD) {
    return connection.Lost(error.message, false);
  }
  MUSTER_TRY(connection.EndSimple());
  return error;
}

PgCopyOut::PgCopyOut(PgCopyOut&& other) noexcept
    : connection_(other.connection_), piece_(std::exchange(other.piece_, nullptr)) {}

PgCopyOut& PgCopyOut::operator=(PgCopyOut&& other) noexcept {
  std::swap(connection_, other.connection_);
  std::swap(piece_, other.piece_);
  return *this;
}

PgCopyOut::~PgCopyOut() { PQfreemem(piece_); }

Result<std::optional<std::string_view>> PgCopyOut::Next() {
  PgConnection& connection = *connection_;
  PQfreemem(std::exchange(piece_, nullptr));
  while (true) {
    const int size = PQgetCopyData(connection.connection_, &piece_, 1);
    if (size > 0) return std::string_view(piece_, static_cast<size_t>(size));
    if (size < 0) break;
    MUSTER_TRY(connection.AwaitInput(connection.CallDeadline()));
  }
  std::optional<Error> error;
  while (true) {
    MUSTER_TRY(connection.AwaitResult(connection.CallDeadline()));
    PGresult* raw = PQgetResult(connection.connection_);
    if (raw == nullptr) break;
    const PgResult result(raw);
    if (PQresultStatus(raw) != PGRES_COMMAND_OK && !error) error = connection.ServerError(raw);
  }
  if (PQstatus(connection.connection_) == CONNECTION_BAD) {
    return connection.Lost(error ? error->message : PQerrorMessage(connection.connection_), false);
  }
  MUSTER_TRY(connection.EndSimple());
  if (error) return *std::move(error);
  return std::nullopt;
}

}  // namespace muster::sql
