#include "sql/postgres.h"

#include <endian.h>
#include <poll.h>
#include <postgresql/libpq-fe.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "core/descriptor.h"
#include "core/interrupt.h"

namespace muster::sql {
namespace {

using std::chrono::milliseconds;
using Deadline = MonoTime;

constexpr const char* kInDoubt = "the change may have been applied: read again, then decide";

constexpr milliseconds kLook{200};  // how often to check for an interrupt

// False: the deadline passed, or the thread was interrupted.
bool AwaitSocket(int socket, short events, Deadline deadline) {
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

// On one line, without libpq's trailing white space.
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space) line += c;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

std::string HintFor(std::string_view sqlstate) {
  if (sqlstate.starts_with("28")) return "check user and password, and the server's pg_hba.conf";
  if (sqlstate == "42501") return "grant the role the missing privilege";
  if (sqlstate == "3D000") return "create the database first: createdb NAME";
  if (sqlstate == "3F000" || sqlstate == "42P01")
    return "was it dropped? open it again to create it";
  if (sqlstate == "25006") return "connect to the primary, or lift default_transaction_read_only";
  if (sqlstate == "53100") return "free disk space on the server";
  if (sqlstate == "53300") return "raise max_connections, or run fewer workers";
  if (sqlstate == "57014") return "the server took too long: check its load and locks";
  if (sqlstate == "26000") return "connect directly, or to a pooler in session mode";
  if (sqlstate.starts_with("57P")) return "the server is starting or stopping: try again";
  if (sqlstate.starts_with("XX00"))
    return "check the server's log and disks, then restore a backup";
  return "";
}

// libpq gives the SQLSTATE of a refused connection only in its verbose message: `connection to
// server at ... failed: FATAL:  28P01: password authentication failed ...`.
struct ConnectRefusal {
  std::string sqlstate;
  std::string message;
};

std::optional<ConnectRefusal> ParseRefusal(std::string_view text) {
  static constexpr std::string_view kMark = ":  ";
  for (size_t at = text.rfind(kMark); at != std::string_view::npos && at > 0;
       at = text.rfind(kMark, at - 1)) {
    const std::string_view rest = text.substr(at + kMark.size());
    if (rest.size() < 7 || rest.substr(5, 2) != ": ") continue;
    const std::string_view sqlstate = rest.substr(0, 5);
    const bool plausible = std::all_of(sqlstate.begin(), sqlstate.end(), [](unsigned char c) {
      return std::isdigit(c) != 0 || std::isupper(c) != 0;
    });
    if (!plausible) continue;
    return ConnectRefusal{std::string(sqlstate), std::string(rest.substr(7, rest.find('\n') - 7))};
  }
  return std::nullopt;
}

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

int32_t ReadInt32(const char* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<int32_t>(be32toh(value));
}

int64_t ReadInt64(const char* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<int64_t>(be64toh(value));
}

void AppendInt32(std::string& bytes, int32_t value) {
  const uint32_t big = htobe32(static_cast<uint32_t>(value));
  bytes.append(reinterpret_cast<const char*>(&big), sizeof big);
}

// PostgreSQL's epoch is 2000-01-01, in microseconds.
constexpr auto kServerEpoch = std::chrono::sys_days(std::chrono::year(2000) / 1 / 1);

}  // namespace

PgParams& PgParams::Add(const char* value, size_t length, int format) {
  assert(static_cast<size_t>(count_) < kMax);
  values_[count_] = value;
  lengths_[count_] = static_cast<int>(length);
  formats_[count_] = format;
  ++count_;
  return *this;
}

PgParams& PgParams::Text(std::string_view bytes) {
  // A null pointer would mean SQL NULL.
  return Add(bytes.data() == nullptr ? "" : bytes.data(), bytes.size());
}

PgParams& PgParams::Int64(int64_t value) {
  const uint64_t big = htobe64(static_cast<uint64_t>(value));
  std::memcpy(numbers_[count_].data(), &big, sizeof big);
  return Add(numbers_[count_].data(), sizeof big);
}

PgParams& PgParams::Int32(int32_t value) {
  const uint32_t big = htobe32(static_cast<uint32_t>(value));
  std::memcpy(numbers_[count_].data(), &big, sizeof big);
  return Add(numbers_[count_].data(), sizeof big);
}

PgParams& PgParams::Time(WallTime value) {
  if (value == WallTime::min()) return Int64(INT64_MIN);
  return Int64(std::chrono::microseconds(value - kServerEpoch).count());
}

PgParams& PgParams::Literal(const std::string& text) {
  return Add(text.c_str(), text.size(), kText);
}

PgParams& PgParams::Null() { return Add(nullptr, 0); }

PgArray::PgArray(Element element, size_t count, size_t expected_bytes) {
  bytes_.reserve(20 + count * 12 + expected_bytes);
  AppendInt32(bytes_, 1);  // dimensions
  AppendInt32(bytes_, 1);  // has nulls flag
  AppendInt32(bytes_, static_cast<int32_t>(element));
  AppendInt32(bytes_, static_cast<int32_t>(count));
  AppendInt32(bytes_, 1);  // lower bound
}

void PgArray::Text(std::string_view bytes) {
  AppendInt32(bytes_, static_cast<int32_t>(bytes.size()));
  bytes_ += bytes;
}

void PgArray::Int64(int64_t value) {
  const uint64_t big = htobe64(static_cast<uint64_t>(value));
  Text({reinterpret_cast<const char*>(&big), sizeof big});
}

void PgArray::Int32(int32_t value) {
  AppendInt32(bytes_, sizeof value);
  AppendInt32(bytes_, value);
}

void PgArray::Null() { AppendInt32(bytes_, -1); }

void PgResult::Clear::operator()(pg_result* result) const { PQclear(result); }

int PgResult::rows() const { return PQntuples(result_.get()); }

int PgResult::columns() const { return PQnfields(result_.get()); }

std::string_view PgResult::ColumnName(int column) const { return PQfname(result_.get(), column); }

int64_t PgResult::ColumnType(int column) const { return PQftype(result_.get(), column); }

int64_t PgResult::affected() const {
  const std::string_view count = PQcmdTuples(result_.get());
  int64_t value = 0;
  std::from_chars(count.data(), count.data() + count.size(), value);
  return value;
}

bool PgResult::IsNull(int row, int column) const {
  return PQgetisnull(result_.get(), row, column) != 0;
}

std::string_view PgResult::Text(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}

int64_t PgResult::Int64(int row, int column) const {
  assert(PQgetlength(result_.get(), row, column) == 8);
  return ReadInt64(PQgetvalue(result_.get(), row, column));
}

int32_t PgResult::Int32(int row, int column) const {
  assert(PQgetlength(result_.get(), row, column) == 4);
  return ReadInt32(PQgetvalue(result_.get(), row, column));
}

WallTime PgResult::Time(int row, int column) const {
  const std::chrono::microseconds since{Int64(row, column)};
  return kServerEpoch + std::chrono::floor<milliseconds>(since);
}

bool IsPgDeadlock(const Error& error) { return error.message.find("[40P01]") != std::string::npos; }

Code PgCodeOf(std::string_view sqlstate) {
  static constexpr std::pair<std::string_view, Code> kCodes[] = {
      {"08007", Code::kUnknownOutcome},  // transaction resolution unknown
      {"08", Code::kUnavailable},        // connection
      {"22", Code::kInvalid},            // data
      {"23", Code::kConflict},           // constraint
      {"25006", Code::kReadOnly},
      {"25P03", Code::kUnavailable},  // idle in a transaction for too long
      {"25P04", Code::kUnavailable},  // a transaction that took too long
      {"28", Code::kPermission},
      {"3D000", Code::kNotFound},        // database
      {"3F000", Code::kNotFound},        // schema
      {"40003", Code::kUnknownOutcome},  // statement completion unknown
      {"40", Code::kUnavailable},        // serialization failure, deadlock
      {"42501", Code::kPermission},
      {"42939", Code::kInvalid},   // reserved name
      {"42P01", Code::kNotFound},  // table
      {"53100", Code::kFull},
      {"53", Code::kUnavailable},     // out of memory, too many connections
      {"54", Code::kInvalid},         // a program limit, as the depth of JSON
      {"55P03", Code::kUnavailable},  // lock not available
      {"57", Code::kUnavailable},     // cancelled, shutting down, starting up
      {"XX001", Code::kCorrupt},
      {"XX002", Code::kCorrupt},
  };
  for (const auto& [prefix, code] : kCodes) {
    if (sqlstate.starts_with(prefix)) return code;
  }
  return Code::kInternal;
}

std::string PgIdentifier(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string PgLiteral(std::string_view text) {
  const bool escapes = text.find('\\') != std::string_view::npos;
  std::string quoted = escapes ? "E'" : "'";  // correct whatever standard_conforming_strings is
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += c;
    quoted += c;
  }
  return quoted + '\'';
}

Result<std::unique_ptr<PgConnection>> PgConnection::Open(const PgOptions& options) {
  std::unique_ptr<PgConnection> connection(new PgConnection(options));
  MUSTER_TRY(connection->Connect());
  return connection;
}

PgConnection::~PgConnection() {
  if (connection_ != nullptr) PQfinish(connection_);
}

Status PgConnection::Connect() {
  std::unique_ptr<PQconninfoOption, FreeConninfo> parsed(
      PQconninfoParse(options_.uri.c_str(), nullptr));
  // libpq's own message may quote the password.
  if (!parsed) {
    return Error{Code::kInvalid, "the PostgreSQL connection URI cannot be read",
                 "write postgresql://USER@HOST:PORT/DATABASE?PARAMETER=VALUE, and special "
                 "characters as %XX"};
  }

  const std::string user_timeout = std::to_string(options_.call_timeout.count());
  std::string session_options = SettingsAsOptions(options_);
  std::vector<std::pair<const char*, const char*>> arguments = {
      {"client_encoding", "UTF8"}, {"fallback_application_name", "muster"},
      {"keepalives_idle", "10"},   {"keepalives_interval", "5"},
      {"keepalives_count", "3"},   {"tcp_user_timeout", user_timeout.c_str()},
  };
  for (const PQconninfoOption* given = parsed.get(); given->keyword != nullptr; ++given) {
    if (given->val == nullptr) continue;
    // Options in the URI come last, so they win.
    const std::string_view keyword = given->keyword;
    if (keyword == "options") session_options += given->val;
    if (keyword == "options" || keyword == "client_encoding") continue;
    arguments.emplace_back(given->keyword, given->val);
  }
  arguments.emplace_back("options", session_options.c_str());
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  for (const auto& [keyword, value] : arguments) {
    keywords.push_back(keyword);
    values.push_back(value);
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);

  const Deadline deadline = RealEnv().MonoNow() + options_.connect_timeout;
  connection_ = PQconnectStartParams(keywords.data(), values.data(), 0);
  if (connection_ == nullptr) return Error{Code::kUnavailable, "out of memory for a connection"};
  const auto text = [](const char* value) { return std::string(value == nullptr ? "" : value); };
  place_ = "PostgreSQL at " + text(PQhost(connection_)) + ":" + text(PQport(connection_)) + "/" +
           text(PQdb(connection_));
  PQsetNoticeReceiver(
      connection_, [](void*, const PGresult*) {}, nullptr);
  PQsetErrorVerbosity(connection_, PQERRORS_VERBOSE);  // see ParseRefusal
  PostgresPollingStatusType state = PGRES_POLLING_WRITING;
  while (state != PGRES_POLLING_OK) {
    if (PQstatus(connection_) == CONNECTION_BAD) return ConnectError();
    const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (!AwaitSocket(PQsocket(connection_), events, deadline)) {
      if (Interrupted()) return Error{Code::kCancelled, place_ + ": stopped on request"};
      return Error{Code::kUnavailable,
                   place_ + " did not answer within " +
                       std::to_string(options_.connect_timeout.count()) + " ms",
                   "check that the server runs and that the network lets this machine through"};
    }
    state = PQconnectPoll(connection_);
    if (state == PGRES_POLLING_FAILED) return ConnectError();
  }
  PQsetErrorVerbosity(connection_, PQERRORS_DEFAULT);
  if (PQsetnonblocking(connection_, 1) != 0 || PQenterPipelineMode(connection_) != 1) {
    return Error{Code::kInternal, place_ + ": " + OneLine(PQerrorMessage(connection_))};
  }
  return {};
}

Error PgConnection::ConnectError() const {
  const std::string_view text = PQerrorMessage(connection_);
  if (const auto refusal = ParseRefusal(text)) {
    return Error{PgCodeOf(refusal->sqlstate), place_ + ": " + OneLine(refusal->message),
                 HintFor(refusal->sqlstate)};
  }
  if (PQconnectionNeedsPassword(connection_) != 0) {
    return Error{Code::kPermission, place_ + " asks for a password",
                 "give one in the URL by reference: ${env:NAME} or ${file:PATH}"};
  }
  if (HasNoDescriptors()) return OutOfDescriptors(place_ + ": " + OneLine(text));
  return Error{Code::kUnavailable, place_ + ": " + OneLine(text),
               "check that the server runs, and host and port of the URL"};
}

Result<PgResult> PgConnection::Execute(const PgStatement& statement, const PgParams& params) {
  const PgCall call{statement, params};
  MUSTER_ASSIGN(auto results, Execute({&call, 1}));
  return std::move(results.front());
}

Result<std::vector<PgResult>> PgConnection::Execute(std::span<const PgCall> calls) {
  const Deadline deadline = CallDeadline();
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

Status PgConnection::Flush(Deadline deadline) {
  while (true) {
    const int unsent = PQflush(connection_);
    if (unsent == 0) return {};
    // libpq cannot say how much was sent before the network failed.
    if (unsent < 0) return Lost(PQerrorMessage(connection_), true);
    if (!AwaitSocket(PQsocket(connection_), POLLIN | POLLOUT, deadline)) {
      return Lost("the server takes no data", false);
    }
    // A server blocked on its responses reads no more requests. This also sends.
    if (PQconsumeInput(connection_) != 1) return Lost(PQerrorMessage(connection_), true);
  }
}

Status PgConnection::AwaitInput(Deadline deadline) {
  if (!AwaitSocket(PQsocket(connection_), POLLIN, deadline)) {
    return Lost("no answer in time", true);
  }
  if (PQconsumeInput(connection_) != 1) return Lost(PQerrorMessage(connection_), true);
  return {};
}

Status PgConnection::AwaitResult(Deadline deadline) {
  while (PQisBusy(connection_) != 0) MUSTER_TRY(AwaitInput(deadline));
  return {};
}

PgConnection::Deadline PgConnection::CallDeadline() const {
  return std::min<Deadline>(RealEnv().MonoNow() + options_.call_timeout, deadline_);
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
                                                    Deadline deadline) {
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
              place_ + ": connection lost: " + OneLine(why),
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
  std::string text = place_ + ": " + OneLine(message ? message : PQresultErrorMessage(result));
  // Only the detail names the missing key and its table.
  const char* detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
  if (sqlstate == "23503" && detail != nullptr) text += ": " + OneLine(detail);
  // Without an SQLSTATE libpq itself failed, out of memory perhaps, not the server.
  if (sqlstate.empty() && writing_) return Error{Code::kUnknownOutcome, std::move(text), kInDoubt};
  if (!sqlstate.empty()) text += " [" + sqlstate + "]";
  return Error{PgCodeOf(sqlstate), std::move(text), HintFor(sqlstate)};
}

void PgConnection::Drop() {
  // Closing makes libpq flush its buffer, possibly including the byte that commits what the caller
  // was just told is not applied.
  shutdown(PQsocket(connection_), SHUT_RDWR);
  PQfinish(connection_);
  connection_ = nullptr;
}

}  // namespace muster::sql
