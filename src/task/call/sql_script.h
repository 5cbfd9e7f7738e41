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

// The statements of a script for DuckDB or PostgreSQL: semicolons in quotes, dollar quotes and
// comments end nothing. What is never closed belongs to the last statement: the database says so.
std::vector<SqlStatement> SplitSqlScript(std::string_view script);

// What DuckDB says of a statement, as an error about a place in the script: "file:12: statement 3:
// …", on one line.
Error ScriptError(const Error& error, const std::string& file, const SqlStatement& statement,
                  size_t number);

}  // namespace muster::task
