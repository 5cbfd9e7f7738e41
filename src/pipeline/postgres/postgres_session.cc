#include "pipeline/postgres/postgres_session.h"

#include <chrono>

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

Status RequireUtf8(const sql::PgConnection& connection) {
  if (connection.ServerEncoding() == "UTF8") return {};
  return Error{Code::kIncompatible,
               connection.Place() + " has the encoding " + std::string(connection.ServerEncoding()),
               "documents are UTF-8: use a database that was created with ENCODING 'UTF8'"};
}

}  // namespace

Result<std::unique_ptr<sql::PgConnection>> OpenPgWriteSession(const std::string& uri) {
  const sql::PgOptions options{.uri = uri,
                               .call_timeout = 60s,
                               .settings = {{"idle_in_transaction_session_timeout", "60s"}}};
  MUSTER_ASSIGN(auto connection, sql::PgConnection::Open(options));
  MUSTER_TRY(RequireUtf8(*connection));
  const sql::PgStatement durable{"",
                                 "SELECT set_config('synchronous_commit', 'on', false)"
                                 " WHERE current_setting('synchronous_commit') = 'off'",
                                 false};
  MUSTER_TRY(connection->Execute(durable, sql::PgParams()));
  return connection;
}

Result<std::unique_ptr<sql::PgConnection>> OpenPgReadSession(const std::string& uri) {
  // Date and interval formats that every server parses, whatever the database's settings.
  const sql::PgOptions options{.uri = uri,
                               .call_timeout = 600s,
                               .settings = {{"statement_timeout", "0"},
                                            {"idle_in_transaction_session_timeout", "0"},
                                            // A table without a key is read in page order.
                                            {"max_parallel_workers_per_gather", "0"},
                                            {"synchronize_seqscans", "off"},
                                            // Rows hidden by a policy must fail the read instead of
                                            // going missing.
                                            {"row_security", "off"},
                                            {"DateStyle", "ISO"},
                                            {"IntervalStyle", "iso_8601"},
                                            {"extra_float_digits", "1"},
                                            {"TimeZone", "UTC"}}};
  MUSTER_ASSIGN(auto connection, sql::PgConnection::Open(options));
  MUSTER_TRY(RequireUtf8(*connection));
  return connection;
}

Result<std::string> PgTableId(sql::PgConnection& connection, const std::string& name) {
  const sql::PgStatement look{"",
                              "SELECT s.system_identifier || '/' || d.oid || '/' || c.oid"
                              " FROM pg_control_system() s, pg_database d, pg_class c WHERE"
                              " d.datname = current_database() AND c.oid = to_regclass($1)",
                              false};
  const auto found = connection.Execute(look, sql::PgParams().Text(name));
  if (!found && found.error().code == Code::kPermission) return std::string();
  if (!found) return found.error();
  return found->rows() == 1 ? std::string(found->Text(0, 0)) : std::string();
}

}  // namespace muster::pipeline
