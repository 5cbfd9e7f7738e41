#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster::task {

// One statement of a script, from its first word on, without the semicolon.
struct SqlStatement {
  std::string text;
  size_t line = 1;  // where it begins
};

// Splits a script for DuckDB or PostgreSQL at its semicolons, ignoring those in quotes, dollar
// quotes and comments. An unclosed quote extends to the end: the database reports it.
std::vector<SqlStatement> SplitSqlScript(std::string_view script);

// DuckDB's error about a statement, located in the script: "file:12: statement 3: …", on one line.
Error ScriptError(const Error& error, const std::string& file, const SqlStatement& statement,
                  size_t number);

}  // namespace muster::task
