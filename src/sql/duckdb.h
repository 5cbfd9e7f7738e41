#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "muster/result.h"

namespace muster::sql {

// A value in a row; text is valid until the row's callback returns.
using DuckValue = std::variant<std::monostate, int64_t, double, std::string_view>;

struct DuckOptions {
  int64_t memory_mb = 1'024;  // beyond this it spills to files below `spill_folder`
  std::string spill_folder;   // created when needed
  // Statements can only read and write files in these folders. Absolute.
  std::vector<std::string> folders;
};

// An in-memory DuckDB: SQL over JSON lines and Parquet files. It has no network access, cannot load
// extensions, and its time zone is always UTC.
//
// The library is loaded when the first database is opened, not linked: it is larger than the rest
// of the program, and other commands need neither it nor its load time. It is looked up in the file
// named by MUSTER_DUCKDB, then in ../lib/muster next to the program's folder, where both the build
// and the installation put it, then in the system's library path. Its C API is stable, and the few
// functions used are declared in the .cc: only a Go module ships the header, and a build should not
// need Go for that.
//
// Used by one thread at a time, except for Interrupt.
//
// Errors: kInvalid, with DuckDB's message; kFull (memory and disk), kCancelled (interrupted),
// kUnavailable (the library is missing).
class DuckDb {
 public:
  static Result<std::unique_ptr<DuckDb>> Open(const DuckOptions& options);

  // Whether the library can be loaded. kIncompatible: it cannot.
  static Status CheckLibrary();

  ~DuckDb();
  DuckDb(const DuckDb&) = delete;
  DuckDb& operator=(const DuckDb&) = delete;

  // Runs one or more statements and discards their rows.
  Status Execute(const std::string& sql);

  // Whether a single statement returns rows that could fill a table: SELECT or a shorthand for it.
  Result<bool> IsQuery(const std::string& statement);

  // Calls `row` for each row of a query whose columns are BIGINT, DOUBLE or VARCHAR. All rows are
  // held in memory. Stops at the first failure of `row`.
  using OnRow = std::function<Status(std::span<const DuckValue> values)>;
  Status Query(const std::string& sql, const OnRow& row);

  // The first column of the first row; 0 without rows.
  Result<int64_t> QueryInt(const std::string& sql);

  // Cancels the running statement, if any. From any thread.
  void Interrupt();

 private:
  struct Handles;
  explicit DuckDb(std::unique_ptr<Handles> handles);
  std::unique_ptr<Handles> handles_;
};

// Cancels the running statement and all later ones once a stop is requested. A single Interrupt
// might come just before the statement it is meant for, so this repeats it.
class DuckInterrupter {
 public:
  DuckInterrupter(DuckDb& db, std::stop_token stop);

 private:
  std::jthread thread_;
};

// `name` as an SQL identifier, in double quotes; `text` as an SQL literal, in single ones.
std::string DuckIdentifier(std::string_view name);
std::string DuckLiteral(std::string_view text);

}  // namespace muster::sql
