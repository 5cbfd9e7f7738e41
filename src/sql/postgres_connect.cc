#include <poll.h>
#include <postgresql/libpq-fe.h>

#include "core/descriptor.h"
#include "core/interrupt.h"
#include "sql/postgres.h"

namespace muster::sql {
namespace {

std::string SettingsAsOptions(const PgOptions& options) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view value) {
    text += "-c ";
    text += name;
    text += '=';
    for (const char c : value) {
      if (c == ' ' || c == '\\') text += '\\';
      text += c;
    }
    text += ' ';
  };
  // Slightly shorter than the client's timeout, so that the server reports first.
  add("statement_timeout", std::to_string(options.call_timeout.count() * 4 / 5));
  for (const auto& [name, value] : options.settings) add(name, value);
  return text;
}

struct FreeConninfo {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Conninfo = std::unique_ptr<PQconninfoOption, FreeConninfo>;

// The parameters of a connection: those of the URI, over our defaults.
class ConnectionParameters {
 public:
  ConnectionParameters(const PgOptions& options, Conninfo uri)
      : uri_(std::move(uri)),
        user_timeout_(std::to_string(options.call_timeout.count())),
        session_options_(SettingsAsOptions(options)) {
    Add("client_encoding", "UTF8");
    Add("fallback_application_name", "muster");
    Add("keepalives_idle", "10");
    Add("keepalives_interval", "5");
    Add("keepalives_count", "3");
    Add("tcp_user_timeout", user_timeout_.c_str());
    for (const PQconninfoOption* given = uri_.get(); given->keyword != nullptr; ++given) {
      if (given->val == nullptr) continue;
      // Options in the URI come last, so they win.
      const std::string_view keyword = given->keyword;
      if (keyword == "options") session_options_ += given->val;
      if (keyword == "options" || keyword == "client_encoding") continue;
      Add(given->keyword, given->val);
    }
    if (options.replication) Add("replication", "database");
    Add("options", session_options_.c_str());
    Add(nullptr, nullptr);
  }

  pg_conn* Start() const { return PQconnectStartParams(keywords_.data(), values_.data(), 0); }

 private:
  void Add(const char* keyword, const char* value) {
    keywords_.push_back(keyword);
    values_.push_back(value);
  }

  const Conninfo uri_;
  const std::string user_timeout_;
  std::string session_options_;
  std::vector<const char*> keywords_;
  std::vector<const char*> values_;
};

}  // namespace

Result<std::unique_ptr<PgConnection>> PgConnection::Open(const PgOptions& options) {
  std::unique_ptr<PgConnection> connection(new PgConnection(options));
  MUSTER_TRY(connection->Connect());
  return connection;
}

Status PgConnection::Connect() {
  Conninfo uri(PQconninfoParse(options_.uri.c_str(), nullptr));
  // libpq's own message may quote the password.
  if (!uri) {
    return Error{Code::kInvalid, "the PostgreSQL connection URI cannot be read",
                 "write postgresql://USER@HOST:PORT/DATABASE?PARAMETER=VALUE, and special "
                 "characters as %XX"};
  }
  const ConnectionParameters parameters(options_, std::move(uri));
  const MonoTime deadline = RealEnv().MonoNow() + options_.connect_timeout;
  connection_ = parameters.Start();
  if (connection_ == nullptr) return Error{Code::kUnavailable, "out of memory for a connection"};
  const auto text = [](const char* value) { return std::string(value == nullptr ? "" : value); };
  place_ = "PostgreSQL at " + text(PQhost(connection_)) + ":" + text(PQport(connection_)) + "/" +
           text(PQdb(connection_));
  PQsetNoticeReceiver(
      connection_, [](void*, const PGresult*) {}, nullptr);
  PQsetErrorVerbosity(connection_, PQERRORS_VERBOSE);  // see PgConnectRefusal
  MUSTER_TRY(AwaitConnected(deadline));
  PQsetErrorVerbosity(connection_, PQERRORS_DEFAULT);
  if (PQsetnonblocking(connection_, 1) != 0 || PQenterPipelineMode(connection_) != 1) {
    return Error{Code::kInternal, place_ + ": " + PgOneLine(PQerrorMessage(connection_))};
  }
  return {};
}

Status PgConnection::AwaitConnected(MonoTime deadline) {
  PostgresPollingStatusType state = PGRES_POLLING_WRITING;
  while (state != PGRES_POLLING_OK) {
    if (PQstatus(connection_) == CONNECTION_BAD) return ConnectError();
    const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (!AwaitSocket(PQsocket(connection_), events, deadline)) {
      if (Interrupted()) return Error{Code::kCancelled, place_ + ": stopped on request"};
      return Error{Code::kUnavailable,
                   place_ + " did not answer within " +
                       std::to_string(options_.connect_timeout.count()) + " ms",
                   "check that the server is running and reachable from this machine"};
    }
    state = PQconnectPoll(connection_);
    if (state == PGRES_POLLING_FAILED) return ConnectError();
  }
  return {};
}

Error PgConnection::ConnectError() const {
  const std::string_view text = PQerrorMessage(connection_);
  if (const auto refusal = ParsePgConnectRefusal(text)) {
    return Error{PgCodeOf(refusal->sqlstate), place_ + ": " + PgOneLine(refusal->message),
                 PgHintFor(refusal->sqlstate)};
  }
  if (PQconnectionNeedsPassword(connection_) != 0) {
    return Error{Code::kPermission, place_ + " requires a password",
                 "give one in the URL by reference: ${env:NAME} or ${file:PATH}"};
  }
  if (HasNoDescriptors()) return OutOfDescriptors(place_ + ": " + PgOneLine(text));
  return Error{Code::kUnavailable, place_ + ": " + PgOneLine(text),
               "check that the server is running, and the host and port in the URL"};
}

}  // namespace muster::sql
