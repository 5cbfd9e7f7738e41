#include "sql/postgres_replication.h"

#include <poll.h>
#include <postgresql/libpq-fe.h>

#include <utility>

#include "core/interrupt.h"
#include "core/number.h"

namespace muster::sql {
namespace {

constexpr std::string_view kInUse = "55006";

uint64_t NumberAt(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  for (const char byte : bytes.substr(at, 8)) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

void AppendNumber(std::string& out, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

// 'w': start, end, time and a message. 'k': end, time, and whether a reply is wanted.
std::optional<PgFrame> FrameOf(std::string_view piece) {
  constexpr size_t kDataHead = 25;
  constexpr size_t kKeepAlive = 18;
  if (piece.starts_with('w') && piece.size() > kDataHead) {
    return PgFrame{.message = piece.substr(kDataHead)};
  }
  if (piece.starts_with('k') && piece.size() == kKeepAlive) {
    return PgFrame{.sent = NumberAt(piece, 1), .wants_reply = piece.back() != 0};
  }
  return std::nullopt;
}

}  // namespace

Result<PgReplication> PgReplication::Open(PgOptions options) {
  options.replication = true;
  MUSTER_ASSIGN(auto connection, PgConnection::Open(options));
  return PgReplication(std::move(connection));
}

PgReplication::PgReplication(PgReplication&& other) noexcept
    : connection_(std::move(other.connection_)), piece_(std::exchange(other.piece_, nullptr)) {}

PgReplication::~PgReplication() { PQfreemem(piece_); }

Result<PgResult> PgReplication::Ask(const std::string& command) {
  PgConnection& connection = *connection_;
  MUSTER_TRY(connection.SendSimple(command));
  PgResult answer(nullptr);
  std::optional<Error> error;
  while (true) {
    MUSTER_TRY(connection.AwaitResult(connection.CallDeadline()));
    PGresult* raw = PQgetResult(connection.connection_);
    if (raw == nullptr) break;
    PgResult result(raw);
    const ExecStatusType status = PQresultStatus(raw);
    if (status == PGRES_COPY_BOTH) return result;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      answer = std::move(result);
    } else if (!error) {
      error = connection.ServerError(raw);
      const char* state = PQresultErrorField(raw, PG_DIAG_SQLSTATE);
      if (state != nullptr && state == kInUse) error->code = Code::kConflict;
    }
  }
  if (PQstatus(connection.connection_) == CONNECTION_BAD) {
    return connection.Lost(error ? error->message : PQerrorMessage(connection.connection_), true);
  }
  MUSTER_TRY(connection.EndSimple());
  if (error) return *std::move(error);
  if (answer.empty()) return Error{Code::kInternal, connection.Place() + ": no answer"};
  return answer;
}

Result<PgSystem> PgReplication::Identify() {
  MUSTER_ASSIGN(const PgResult answer, Ask("IDENTIFY_SYSTEM"));
  const auto timeline = answer.rows() == 1 && answer.columns() >= 2
                            ? ParseNumber<int64_t>(answer.Text(0, 1))
                            : std::nullopt;
  if (!timeline) return Error{Code::kInternal, connection_->Place() + ": it has no identity"};
  return PgSystem{std::string(answer.Text(0, 0)), *timeline};
}

Result<std::optional<PgLsn>> PgReplication::EndOfTimeline(int64_t timeline, int64_t current) {
  MUSTER_ASSIGN(const PgResult answer, Ask("TIMELINE_HISTORY " + std::to_string(current)));
  // Lines of "1\t0/5000028\treason".
  std::string_view rest = answer.Text(0, 1);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t first = line.find('\t');
    if (first == std::string_view::npos) continue;
    const size_t second = std::min(line.find('\t', first + 1), line.size());
    if (ParseNumber<int64_t>(line.substr(0, first)) != timeline) continue;
    return ParsePgLsn(line.substr(first + 1, second - first - 1));
  }
  return std::optional<PgLsn>();
}

Result<PgLsn> PgReplication::CreateSlot(const std::string& name) {
  auto answer =
      Ask("CREATE_REPLICATION_SLOT " + PgIdentifier(name) + " LOGICAL pgoutput NOEXPORT_SNAPSHOT");
  if (!answer && answer.error().code == Code::kUnavailable && connection_->lost()) {
    return Error{Code::kUnknownOutcome, answer.error().message, answer.error().hint};
  }
  MUSTER_ASSIGN(const PgResult slot, std::move(answer));
  const auto lsn = slot.rows() == 1 ? ParsePgLsn(slot.Text(0, 1)) : std::nullopt;
  if (!lsn) return Error{Code::kInternal, connection_->Place() + ": the new slot has no position"};
  return *lsn;
}

Status PgReplication::Start(const std::string& slot, PgLsn from,
                            const std::vector<std::string>& publications) {
  std::string names;
  for (const std::string& publication : publications) {
    names += (names.empty() ? "" : ",") + PgIdentifier(publication);
  }
  std::string command = "START_REPLICATION SLOT " + PgIdentifier(slot) + " LOGICAL " +
                        PgLsnText(from) + " (proto_version '1', publication_names " +
                        PgLiteral(names);
  if (connection_->ServerVersion() >= 140'000) command += ", messages 'true'";
  MUSTER_TRY(Ask(command + ")"));
  return {};
}

Result<std::optional<PgFrame>> PgReplication::Next(MonoTime until) {
  PgConnection& connection = *connection_;
  PQfreemem(std::exchange(piece_, nullptr));
  while (true) {
    if (connection.lost()) {
      return Error{Code::kUnavailable, connection.Place() + ": the connection is lost"};
    }
    const int size = PQgetCopyData(connection.connection_, &piece_, 1);
    if (size > 0) {
      const auto frame = FrameOf({piece_, static_cast<size_t>(size)});
      if (frame) return frame;
      return Error{Code::kCorrupt, connection.Place() + ": a piece of the stream is malformed"};
    }
    if (size < 0) return Ended();
    if (!PgConnection::AwaitSocket(PQsocket(connection.connection_), POLLIN, until)) {
      if (Interrupted()) return Error{Code::kCancelled, connection.Place() + ": stopped"};
      return std::nullopt;
    }
    if (PQconsumeInput(connection.connection_) != 1) {
      return connection.Lost(PQerrorMessage(connection.connection_), false);
    }
  }
}

// The server has ended the stream: it shuts down, or the slot is lost.
Error PgReplication::Ended() {
  PgConnection& connection = *connection_;
  if (Status ready = connection.AwaitResult(connection.CallDeadline()); !ready) {
    return ready.error();
  }
  PGresult* raw = PQgetResult(connection.connection_);
  const PgResult result(raw);
  std::string why = "the server has ended the stream";
  if (raw != nullptr && PQresultStatus(raw) == PGRES_FATAL_ERROR) {
    why = connection.ServerError(raw).message;
  }
  return connection.Lost(why, false);
}

Status PgReplication::Confirm(PgLsn flushed) {
  PgConnection& connection = *connection_;
  if (connection.lost()) {
    return Error{Code::kUnavailable, connection.Place() + ": the connection is lost"};
  }
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      RealEnv().WallNow() - std::chrono::sys_days(std::chrono::year{2000} / 1 / 1));
  std::string reply = "r";
  for (int i = 0; i < 3; ++i) AppendNumber(reply, flushed);  // received, flushed, applied
  AppendNumber(reply, static_cast<uint64_t>(now.count()));
  reply += '\0';
  if (PQputCopyData(connection.connection_, reply.data(), static_cast<int>(reply.size())) != 1) {
    return connection.Lost(PQerrorMessage(connection.connection_), false);
  }
  return connection.Flush(connection.CallDeadline());
}

}  // namespace muster::sql
