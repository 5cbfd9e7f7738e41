// Whether a database can be followed.

#include <set>

#include "change/follow_source.h"
#include "change/table_names.h"

namespace muster::change {

Status FollowSource::Check() {
  std::vector<std::string> problems;
  MUSTER_ASSIGN(const sql::PgResult server,
                Ask("SELECT current_setting('wal_level'), pg_is_in_recovery(), "
                    "rolsuper OR rolreplication OR EXISTS (SELECT FROM pg_roles AS granted "
                    "WHERE granted.rolname = 'rds_replication' "
                    "AND pg_has_role(mine.oid, granted.oid, 'member')), current_user, "
                    "current_setting('server_encoding') "
                    "FROM pg_roles AS mine WHERE rolname = current_user"));
  if (server.Text(0, 0) != "logical") {
    problems.push_back("wal_level is '" + std::string(server.Text(0, 0)) +
                       "': ALTER SYSTEM SET wal_level = logical, and restart the server");
  }
  if (server.Text(0, 1) == "t") {
    return Error{Code::kUnavailable, connection_->Place() + " is a standby",
                 "use the primary; a standby that is promoted is followed then"};
  }
  if (server.Text(0, 4) == "SQL_ASCII") {
    problems.emplace_back("the database's encoding is SQL_ASCII, so its text may not be UTF-8");
  }
  if (server.Text(0, 2) != "t") {
    const std::string user(server.Text(0, 3));
    problems.push_back("role '" + user + "' may not replicate: ALTER ROLE " +
                       sql::PgIdentifier(user) + " REPLICATION");
  }
  for (const std::string& table : options_.tables) MUSTER_TRY(CheckTable(table, false, problems));
  for (const Outbox& outbox : options_.outboxes) {
    MUSTER_TRY(CheckTable(outbox.table, true, problems));
    MUSTER_TRY(CheckColumns(outbox, problems));
  }
  if (options_.tables.empty() && options_.outboxes.empty()) {
    problems.emplace_back("no table is named: name tables or outboxes");
  }
  if (problems.empty()) return {};
  return Error{Code::kInvalid,
               connection_->Place() + " cannot be followed:\n  " + Joined(problems, "\n  ")};
}

Status FollowSource::CheckTable(const std::string& table, bool is_outbox,
                                std::vector<std::string>& problems) {
  const TableParts parts = PartsOf(table);
  MUSTER_ASSIGN(
      const sql::PgResult found,
      Ask("SELECT relkind, relreplident, EXISTS (SELECT FROM pg_index "
          "WHERE indrelid = c.oid AND indisprimary), pg_has_role(relowner, 'member'), "
          "relpersistence FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
          "WHERE nspname = " +
          sql::PgLiteral(parts.schema) + " AND relname = " + sql::PgLiteral(parts.table)));
  if (found.rows() == 0) {
    problems.push_back("no table '" + table + "'");
    return {};
  }
  const std::string_view kind = found.Text(0, 0);
  const std::string_view identity = found.Text(0, 1);
  if (kind != "r" && kind != "p") {
    problems.push_back("'" + table + "' is not a table");
    return {};
  }
  if (found.Text(0, 4) != "p") {
    problems.push_back("'" + table + "' is unlogged or temporary: its changes are not in the log");
  }
  if (found.Text(0, 3) != "t") {
    problems.push_back("'" + table +
                       "' belongs to another role, and only its owner can publish it");
  }
  // If such a table were published, the application's own updates and deletes would fail.
  const bool has_identity =
      identity == "f" || identity == "i" || (identity == "d" && found.Text(0, 2) == "t");
  if (!is_outbox && !has_identity) {
    problems.push_back("'" + table + "' has no primary key: add one, or ALTER TABLE " +
                       Quoted(table) + " REPLICA IDENTITY FULL");
  }
  return {};
}

Status FollowSource::CheckColumns(const Outbox& outbox, std::vector<std::string>& problems) {
  const TableParts parts = PartsOf(outbox.table);
  MUSTER_ASSIGN(
      const sql::PgResult found,
      Ask("SELECT attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
          "JOIN pg_namespace n ON n.oid = relnamespace WHERE attnum > 0 AND nspname = " +
          sql::PgLiteral(parts.schema) + " AND relname = " + sql::PgLiteral(parts.table)));
  if (found.rows() == 0) return {};  // there is no such table
  std::set<std::string, std::less<>> columns;
  for (int row = 0; row < found.rows(); ++row) columns.emplace(found.Text(row, 0));
  std::vector<std::string> wanted = {outbox.id, outbox.type, outbox.payload};
  if (!outbox.metadata.empty()) wanted.push_back(outbox.metadata);
  wanted.insert(wanted.end(), outbox.stream.begin(), outbox.stream.end());
  for (const std::string& name : wanted) {
    if (columns.contains(name)) continue;
    problems.push_back("outbox '" + outbox.table + "' has no column '" + name + "'");
  }
  return {};
}

}  // namespace muster::change
