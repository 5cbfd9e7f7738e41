#include "sql/sqlite_table.h"

#include <algorithm>
#include <cctype>

namespace muster::sql {
namespace {

using Form = SqliteTable::Form;

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// SQLite's affinity rules, in order, preceded by JSON.
Form FormOf(const std::string& declared) {
  const std::string type = Upper(declared);
  const auto has = [&](const char* part) { return type.find(part) != std::string::npos; };
  if (has("JSON")) return Form::kJson;
  if (has("INT")) return Form::kInteger;
  if (has("CHAR") || has("CLOB") || has("TEXT")) return Form::kText;
  if (has("BLOB")) return Form::kBlob;
  if (type.empty() || type == "ANY") return Form::kAny;
  if (has("REAL") || has("FLOA") || has("DOUB")) return Form::kReal;
  return Form::kNumeric;
}

// A column may shadow the name.
std::string RowidName(const SqliteTable& table) {
  for (std::string name : {"rowid", "_rowid_", "oid"}) {
    const bool taken =
        std::any_of(table.columns.begin(), table.columns.end(),
                    [&](const auto& column) { return Upper(column.name) == Upper(name); });
    if (!taken) return name;
  }
  return "";
}

}  // namespace

std::string SqliteTable::FoldedName(std::string name) {
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

const SqliteTable::Column* SqliteTable::Find(std::string_view column) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Column& one) { return one.name == column; });
  return found == columns.end() ? nullptr : &*found;
}

Result<SqliteTable> DescribeSqliteTable(SqliteDb& db, const std::string& name) {
  SqliteTable table{.name = name};
  MUSTER_ASSIGN(SqliteStatement kind,
                db.Prepare("SELECT type, wr, name FROM pragma_table_list WHERE schema = 'main'"
                           " AND name = ? COLLATE NOCASE"));
  kind.Bind(name);
  MUSTER_ASSIGN(const bool there, kind.Step());
  if (!there) {
    return Error{Code::kNotFound, "the SQLite file has no table '" + name + "'", "check the name"};
  }
  const bool has_rowid = kind.Text(0) == "table" && kind.Int(1) == 0;
  table.name = kind.Text(2);
  kind.Reset();

  MUSTER_ASSIGN(SqliteStatement info,
                db.Prepare("SELECT name, type, \"notnull\", dflt_value IS NOT NULL, pk, hidden"
                           " FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid"));
  info.Bind(name);
  std::vector<std::pair<int64_t, std::string>> key;
  while (true) {
    MUSTER_ASSIGN(const bool row, info.Step());
    if (!row) break;
    SqliteTable::Column column{.name = std::string(info.Text(0)),
                               .type = std::string(info.Text(1)),
                               .nullable = info.Int(2) == 0,
                               .has_default = info.Int(3) != 0,
                               .generated = info.Int(5) >= 2};
    column.form = FormOf(column.type);
    if (info.Int(4) > 0) key.emplace_back(info.Int(4), column.name);
    table.columns.push_back(std::move(column));
  }
  info.Reset();
  std::sort(key.begin(), key.end());
  for (auto& [place, column] : key) table.key.push_back(std::move(column));
  if (has_rowid) table.rowid = RowidName(table);
  table.rowid_is_key =
      has_rowid && table.key.size() == 1 && Upper(table.Find(table.key[0])->type) == "INTEGER";
  return table;
}

}  // namespace muster::sql
