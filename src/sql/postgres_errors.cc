#include "sql/postgres_errors.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace muster::sql {

bool IsPgDeadlock(const Error& error) { return error.message.find("[40P01]") != std::string::npos; }

bool IsPgLockTimeout(const Error& error) {
  return error.message.find("[55P03]") != std::string::npos;
}

bool IsPgStatementTimeout(const Error& error) {
  return error.message.find("[57014]") != std::string::npos;
}

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
      {"58", Code::kUnavailable},     // the server's system: I/O, files
      {"XX001", Code::kCorrupt},
      {"XX002", Code::kCorrupt},
  };
  for (const auto& [prefix, code] : kCodes) {
    if (sqlstate.starts_with(prefix)) return code;
  }
  return Code::kInternal;
}

std::string PgHintFor(std::string_view sqlstate) {
  if (sqlstate.starts_with("28")) return "check user and password, and the server's pg_hba.conf";
  if (sqlstate == "42501") return "grant the role the missing privilege";
  if (sqlstate == "3D000") return "create the database first: createdb NAME";
  if (sqlstate == "3F000" || sqlstate == "42P01")
    return "if it was dropped, open it again to recreate it";
  if (sqlstate == "25006") return "connect to the primary, or lift default_transaction_read_only";
  if (sqlstate == "53100") return "free disk space on the server";
  if (sqlstate == "53300") return "raise max_connections, or run fewer workers";
  if (sqlstate == "57014") return "the server took too long: check its load and locks";
  if (sqlstate == "26000") return "connect directly, or to a pooler in session mode";
  if (sqlstate.starts_with("57P")) return "the server is starting or stopping: try again";
  if (sqlstate.starts_with("58")) return "check the server's log and disks";
  if (sqlstate.starts_with("XX00"))
    return "check the server's log and disks, then restore a backup";
  return "";
}

std::string PgOneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space) line += c;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

std::optional<PgConnectRefusal> ParsePgConnectRefusal(std::string_view text) {
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
    return PgConnectRefusal{std::string(sqlstate),
                            std::string(rest.substr(7, rest.find('\n') - 7))};
  }
  return std::nullopt;
}

}  // namespace muster::sql
