#include "sql/postgres.h"

#include <poll.h>
#include <postgresql/libpq-fe.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "core/interrupt.h"

namespace muster::sql {
namespace {

using std::chrono::milliseconds;

constexpr const char* kInDoubt = "the change may have been applied: read again, then decide";

constexpr milliseconds kLook{200};  // how often to check for an interrupt

}  // namespace

bool PgConnection::AwaitSocket(int socket, short events, MonoTime deadline) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - RealEnv().MonoNow());
    const milliseconds wait = std::clamp(left, milliseconds(0), kLook);
    pollfd entry{socket, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(wait.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the next read or write reports the error
    if (ready == 0 && (left <= kLook || Interrupted())) return false;
  }
}

PgConnection::~PgConnection() {
  if (connection_ != nullptr) PQfinish(connection_);
}

Result<PgResult> PgConnection::Execute(const PgStatement& statement, const PgParams& params) {
  const PgCall call{statement, params};
  MUSTER_ASSIGN(auto results, Execute({&call, 1}));
  return std::move(results.front());
}

Result<std::vector<PgResult>> PgConnection::Execute(std::span<const PgCall> calls) {
  const MonoTime deadline = CallDeadline();
  if (connection_ == nullptr) return Error{Code::kUnavailable, place_ + ": the connection is lost"};
  in_transaction_ = PQtransactionStatus(connection_) != PQTRANS_IDLE;
  preparing_.clear();
  writing_ = std::any_of(calls.begin(), calls.end(),
                         [](const PgCall& call) { return call.statement.writes; });
  for (const PgCall& call : calls) {
    if (!Send(call)) return Lost(PQerrorMessage(connection_), false);
  }
  // From here on libpq may send on its own, including the byte that commits.
  if (PQpipelineSync(connection_) != 1) return Lost(PQerrorMessage(connection_), true);
  MUSTER_TRY(Flush(deadline));
  return Receive(calls, deadline);
}

bool PgConnection::Send(const PgCall& call) {
  // Binary in both directions unless text is requested: no escaping, printing or parsing.
  const PgStatement& statement = call.statement;
  const PgParams& params = call.params;
  const int results = statement.text_results ? PgParams::kText : PgParams::kBinary;
  if (statement.name.empty()) {
    preparing_.push_back(nullptr);
    return PQsendQueryParams(connection_, statement.sql.c_str(), params.count_, nullptr,
                             params.values_.data(), params.lengths_.data(), params.formats_.data(),
                             results) == 1;
  }
  // A statement may occur several times in one round trip.
  const bool on_its_way = std::any_of(
      preparing_.begin(), preparing_.end(),
      [&](const PgStatement* other) { return other != nullptr && other->name == statement.name; });
  if (!on_its_way && !prepared_.contains(statement.name)) {
    preparing_.push_back(&statement);
    if (PQsendPrepare(connection_, statement.name.c_str(), statement.sql.c_str(), 0, nullptr) !=
        1) {
      return false;
    }
  }
  preparing_.push_back(nullptr);
  return PQsendQueryPrepared(connection_, statement.name.c_str(), params.count_,
                             params.values_.data(), params.lengths_.data(), params.formats_.data(),
                             results) == 1;
}

Status PgConnection::Flush(MonoTime deadline) {
  while (true) {
    const int unsent = PQflush(connection_);
    if (unsent == 0) return {};
    // libpq cannot say how much was sent before the network failed.
    if (unsent < 0) return Lost(PQerrorMessage(connection_), true);
    if (!AwaitSocket(PQsocket(connection_), POLLIN | POLLOUT, deadline)) {
      return Lost("the server stopped reading", false);
    }
    // A server blocked on its responses reads no more requests. This also sends.
    if (PQconsumeInput(connection_) != 1) return Lost(PQerrorMessage(connection_), true);
  }
}

Status PgConnection::AwaitInput(MonoTime deadline) {
  if (!AwaitSocket(PQsocket(connection_), POLLIN, deadline)) {
    return Lost("no response in time", true);
  }
  if (PQconsumeInput(connection_) != 1) return Lost(PQerrorMessage(connection_), true);
  return {};
}

Status PgConnection::AwaitResult(MonoTime deadline) {
  while (PQisBusy(connection_) != 0) MUSTER_TRY(AwaitInput(deadline));
  return {};
}

MonoTime PgConnection::CallDeadline() const {
  return std::min(RealEnv().MonoNow() + options_.call_timeout, deadline_);
}

Status PgConnection::SendSimple(const std::string& sql) {
  if (connection_ == nullptr) return Error{Code::kUnavailable, place_ + ": the connection is lost"};
  writing_ = false;  // a COPY commits nothing: see PgCopyIn
  in_transaction_ = false;
  if (PQexitPipelineMode(connection_) != 1 || PQsendQuery(connection_, sql.c_str()) != 1) {
    return Lost(PQerrorMessage(connection_), false);
  }
  return Flush(CallDeadline());
}

Status PgConnection::EndSimple() {
  if (PQenterPipelineMode(connection_) != 1) return Lost(PQerrorMessage(connection_), false);
  return {};
}

Result<std::vector<PgResult>> PgConnection::Receive(std::span<const PgCall> calls,
                                                    MonoTime deadline) {
  std::vector<PgResult> results;
  results.reserve(calls.size());
  std::optional<Error> error;
  // A result counts only once the server is ready again: the commit comes after the last one.
  for (size_t command = 0;;) {
    if (auto ready = AwaitResult(deadline); !ready) {
      if (error) ready.error().message = "connection lost: " + error->message;
      return std::move(ready).error();
    }
    PGresult* raw = PQgetResult(connection_);
    if (raw == nullptr) {  // end of one command's results
      if (PQstatus(connection_) == CONNECTION_BAD || ++command > preparing_.size() + 1) {
        return Lost(error ? error->message : PQerrorMessage(connection_), true);
      }
      continue;
    }
    PgResult result(raw);
    switch (PQresultStatus(raw)) {
      case PGRES_PIPELINE_SYNC:
        if (error) return *std::move(error);
        return results;
      case PGRES_PIPELINE_ABORTED:
        break;
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
        if (command < preparing_.size() && preparing_[command] != nullptr) {
          prepared_.insert(preparing_[command]->name);
        } else {
          results.push_back(std::move(result));
        }
        break;
      default:
        if (!error) error = ServerError(raw);
    }
  }
}

Result<std::vector<std::string>> PgConnection::Notifications(milliseconds timeout, int wake_fd) {
  if (connection_ == nullptr) return Error{Code::kUnavailable, place_ + ": the connection is lost"};
  std::array<pollfd, 2> entries{{{PQsocket(connection_), POLLIN, 0}, {wake_fd, POLLIN, 0}}};
  const auto longest = std::clamp<int64_t>(timeout.count(), 0, 60'000);
  if (poll(entries.data(), entries.size(), static_cast<int>(longest)) > 0 &&
      PQconsumeInput(connection_) != 1) {
    return Lost(PQerrorMessage(connection_), false);
  }
  std::vector<std::string> payloads;
  while (PGnotify* notification = PQnotifies(connection_)) {
    payloads.emplace_back(notification->extra);
    PQfreemem(notification);
  }
  return payloads;
}

bool PgConnection::Usable() {
  if (connection_ == nullptr) return false;
  pollfd entry{PQsocket(connection_), POLLIN, 0};
  if (poll(&entry, 1, 0) == 0) return true;
  // An unsolicited message is usually the server closing, and its last message may still be on the
  // way.
  Drop();
  return false;
}

int PgConnection::ServerVersion() const { return PQserverVersion(connection_); }

std::string_view PgConnection::ServerEncoding() const {
  const char* encoding = PQparameterStatus(connection_, "server_encoding");
  return encoding == nullptr ? "" : encoding;
}

Error PgConnection::Lost(std::string_view why, bool sent) {
  const bool in_doubt = writing_ && (sent || in_transaction_);
  Error error{in_doubt ? Code::kUnknownOutcome : Code::kUnavailable,
              place_ + ": connection lost: " + PgOneLine(why),
              in_doubt ? kInDoubt : "nothing was applied: try again"};
  if (Interrupted()) {
    error = {Code::kCancelled, place_ + ": stopped on request", in_doubt ? kInDoubt : ""};
  }
  Drop();
  return error;
}

Error PgConnection::ServerError(const pg_result* result) const {
  const char* field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const std::string sqlstate = field == nullptr ? "" : field;
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  std::string text = place_ + ": " + PgOneLine(message ? message : PQresultErrorMessage(result));
  // Only the detail names the missing key and its table.
  const char* detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
  if (sqlstate == "23503" && detail != nullptr) text += ": " + PgOneLine(detail);
  // Without an SQLSTATE libpq itself failed, out of memory perhaps, not the server.
  if (sqlstate.empty() && writing_) return Error{Code::kUnknownOutcome, std::move(text), kInDoubt};
  if (!sqlstate.empty()) text += " [" + sqlstate + "]";
  return Error{PgCodeOf(sqlstate), std::move(text), PgHintFor(sqlstate)};
}

void PgConnection::Drop() {
  // Closing makes libpq flush its buffer, possibly including the byte that commits, although the
  // change was just reported as not applied.
  shutdown(PQsocket(connection_), SHUT_RDWR);
  PQfinish(connection_);
  connection_ = nullptr;
}

}  // namespace muster::sql
