#include <array>
#include <chrono>

#include "core/number.h"
#include "core/url.h"
#include "sql/postgres.h"
#include "store/doctor/diagnose_backends.h"

namespace muster::store {
namespace {

// Everything asked of the server, as text, in one round trip; only what every role may read. $1:
// the namespace.
constexpr std::string_view kQuestions = R"(
SELECT current_setting('server_version'),
       pg_is_in_recovery()::text,
       current_setting('transaction_read_only'),
       coalesce((SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl), ''),
       (inet_client_addr() IS NULL OR inet_client_addr() <<= inet '127.0.0.0/8'
        OR inet_client_addr() = inet '::1')::text,
       coalesce((SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = $1),
                has_database_privilege(current_database(), 'CREATE'))::text,
       EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = $1 AND c.relname = 'schema_version')::text,
       coalesce((SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace
                 WHERE nspname = $1), true)::text,
       coalesce((SELECT bool_and(has_table_privilege(c.oid, privilege))
                 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
                      unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
                 WHERE n.nspname = $1 AND c.relname = 'records'), true)::text,
       current_user,
       (SELECT setting FROM pg_settings WHERE name = 'server_version_num'),
       current_setting('server_encoding'))";

enum Answer {
  kVersion,
  kInRecovery,
  kReadOnlyNow,
  kTls,
  kLocal,
  kMayCreate,
  kExists,
  kMayUse,
  kMayWrite,
  kRole,
  kVersionNumber,
  kEncoding,
  kAnswers
};
using Answers = std::array<std::string, kAnswers>;

Result<Answers> Ask(sql::PgConnection& connection, const std::string& space) {
  MUSTER_ASSIGN(const sql::PgResult result,
                connection.Execute(sql::PgStatement{"", std::string(kQuestions), false},
                                   sql::PgParams().Text(space)));
  Answers answers;
  for (int i = 0; i < kAnswers; ++i) answers[static_cast<size_t>(i)] = result.Text(0, i);
  return answers;
}

void DiagnoseVersion(const Answers& answers, Findings& findings) {
  constexpr int kOldest = 130000;
  if (ParseNumber<int>(answers[kVersionNumber]).value_or(0) < kOldest) {
    findings.Fail("version", {Code::kIncompatible,
                              "PostgreSQL " + answers[kVersion] + " is too old for muster",
                              "use PostgreSQL 13 or later"});
  } else if (answers[kEncoding] != "UTF8") {
    findings.Fail("version",
                  {Code::kIncompatible,
                   "the database stores text as " + answers[kEncoding] + ", not as UTF-8",
                   "use a database created with ENCODING 'UTF8'"});
  } else {
    findings.Ok("version", "PostgreSQL " + answers[kVersion]);
  }
}

void DiagnoseTls(const StoreUrl& url, const Answers& answers, Findings& findings) {
  auto parsed = ParseUrl(url.target);
  const std::string mode = parsed ? parsed->Param("sslmode").value_or("") : "";
  const std::string hint =
      "add ?sslmode=verify-full&sslrootcert=PATH of the CA's certificate to the URL";
  if (answers[kTls].empty() && answers[kLocal] == "true") {
    findings.Ok("tls", "not encrypted, but does not leave this machine");
  } else if (answers[kTls].empty()) {
    findings.Warn("tls", "the connection is not encrypted", hint);
  } else if (mode != "verify-full" && mode != "verify-ca" && answers[kLocal] != "true") {
    findings.Warn("tls", answers[kTls] + ", but the server was not verified", hint);
  } else {
    findings.Ok("tls", answers[kTls]);
  }
}

void DiagnosePrivileges(const StoreUrl& url, const Answers& answers, Findings& findings) {
  const std::string role = "role " + answers[kRole];
  if (answers[kInRecovery] == "true" || answers[kReadOnlyNow] == "on") {
    return findings.Fail("privileges",
                         {Code::kReadOnly,
                          answers[kInRecovery] == "true" ? "the server is a read-only standby"
                                                         : "the server rejects writes",
                          "name the primary in the URL, or set default_transaction_read_only off"});
  }
  if (answers[kExists] == "true" && answers[kMayWrite] == "true") {
    return findings.Ok("privileges", role + " may read and write");
  }
  if (answers[kExists] == "true" || answers[kMayUse] != "true") {
    return findings.Fail(
        "privileges",
        {Code::kPermission, role + " may not use the tables of namespace " + url.space,
         "GRANT USAGE ON SCHEMA " + url.space + " TO " + answers[kRole] +
             "; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + url.space +
             " TO " + answers[kRole]});
  }
  if (answers[kMayCreate] != "true") {
    return findings.Fail(
        "privileges",
        {Code::kPermission, role + " may not create the schema " + url.space,
         "GRANT CREATE ON DATABASE to the role, or let a role that has it open the store once"});
  }
  findings.Ok("privileges", role + " may create the schema");
}

}  // namespace

bool DiagnosePostgres(const StoreUrl& url, Env& env, Findings& findings) {
  auto connection = sql::PgConnection::Open(sql::PgOptions{.uri = url.target});
  if (!connection) {
    findings.Fail("connect", connection.error());
    return false;
  }
  findings.Ok("connect", (*connection)->Place() + " answers");
  auto answers = Ask(**connection, url.space);
  if (!answers) {
    findings.Fail("connect", answers.error());
    return false;
  }
  DiagnoseVersion(*answers, findings);
  DiagnoseTls(url, *answers, findings);
  DiagnosePrivileges(url, *answers, findings);
  if ((*answers)[kExists] == "true") return true;
  findings.Ok("schema",
              "namespace '" + url.space + "' does not exist yet: the first use creates it");
  const WallTime asked = env.WallNow();
  auto now =
      (*connection)
          ->Execute(sql::PgStatement{"", "SELECT clock_timestamp()", false}, sql::PgParams());
  if (now) DiagnoseClock(asked, now->Time(0, 0), env.WallNow(), findings);
  return false;
}

}  // namespace muster::store
