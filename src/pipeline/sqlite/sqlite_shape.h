#pragma once

#include <string>

#include "pipeline/table/table_shape.h"
#include "sql/sqlite_table.h"

namespace muster::pipeline {

// As Source::TableId: by the file's device and inode, and the folded name. Empty: no such file.
std::string SqliteTableId(const std::string& file, const std::string& table);

// A table's shape, with PostgreSQL's type names.
TableShape ShapeOf(const sql::SqliteTable& table);

// "CREATE TABLE IF NOT EXISTS …". Numbers that SQLite would round become text, JSON goes into
// columns declared JSON_TEXT.
std::string CreateSqliteTableSql(const std::string& name, const TableShape& shape);

}  // namespace muster::pipeline
