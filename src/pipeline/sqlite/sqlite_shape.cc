#include "pipeline/sqlite/sqlite_shape.h"

#include <sys/stat.h>

#include <cctype>

namespace muster::pipeline {
namespace {

using Form = sql::SqliteTable::Form;

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string PostgresType(const sql::SqliteTable::Column& column) {
  const std::string type = Upper(column.type);
  switch (column.form) {
    case Form::kJson:
      return "jsonb";
    case Form::kInteger:
      return "bigint";
    case Form::kBlob:
      return "bytea";
    case Form::kReal:
      return "double precision";
    case Form::kNumeric:
      if (type.starts_with("BOOL")) return "boolean";
      return type.starts_with("NUM") || type.starts_with("DEC") ? "numeric" : "text";
    default:
      return "text";
  }
}

std::string SqliteType(const std::string& type) {
  if (type.ends_with("[]") || type.starts_with("json")) return "JSON_TEXT";
  if (type == "bigint" || type == "integer" || type == "smallint") return "INTEGER";
  if (type == "double precision" || type == "real") return "REAL";
  if (type == "boolean") return "BOOLEAN";
  if (type == "bytea") return "BLOB";
  return "TEXT";
}

}  // namespace

TableShape ShapeOf(const sql::SqliteTable& table) {
  TableShape shape;
  for (const sql::SqliteTable::Column& column : table.columns) {
    shape.columns.push_back({column.name, PostgresType(column), column.nullable});
  }
  shape.key = table.key;
  return shape;
}

std::string CreateSqliteTableSql(const std::string& name, const TableShape& shape) {
  std::string sql = "CREATE TABLE IF NOT EXISTS " + sql::SqliteIdentifier(name) + " (";
  for (const TableShape::Column& column : shape.columns) {
    if (&column != shape.columns.data()) sql += ", ";
    sql += sql::SqliteIdentifier(column.name) + " " + SqliteType(column.type) +
           (column.nullable ? "" : " NOT NULL");
  }
  for (const std::string& column : shape.key) {
    sql += (&column == shape.key.data() ? ", PRIMARY KEY (" : ", ") + sql::SqliteIdentifier(column);
  }
  return sql + (shape.key.empty() ? ")" : "))");
}

std::string SqliteTableId(const std::string& file, const std::string& table) {
  struct stat found {};
  if (stat(file.c_str(), &found) != 0) return "";
  return std::to_string(found.st_dev) + "/" + std::to_string(found.st_ino) + "/" +
         sql::SqliteTable::FoldedName(table);
}

}  // namespace muster::pipeline
