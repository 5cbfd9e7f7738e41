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

namespace muster {

// A value of a row; a text lives until the row's callback returns.
using DuckValue = std::variant<std::monostate, int64_t, double, std::string_view>;

struct DuckOptions {
  int64_t memory_mb = 1'024;  // what needs more is put into files below `spill_folder`
  std::string spill_folder;   // made when it is needed
  // Files elsewhere cannot be read or written by any statement. Absolute.
  std::vector<std::string> folders;
};

// A DuckDB in memory: SQL over files of JSON lines and Parquet. It has no network, extensions
// cannot be loaded, and its time zone is UTC, whatever the machine's is.
//
// The library is loaded when the first database is opened, not linked: it is larger than the rest
// of the program, whose other commands need neither it nor the time to load it. It is looked for in
// the file that MUSTER_DUCKDB names, then in ../lib/muster beside the program's folder, where both
// the build and the installation put it, then where the system looks for libraries. Its C interface
// is stable, and the few functions used are declared in the .cc: only a Go module carries the
// header, and a build should not need Go for that.
//
// Used by one thread at a time, Interrupt aside.
//
// Errors: kInvalid, with what DuckDB says of the statement; kFull (memory and disk), kCancelled
// (interrupted), kUnavailable (the library is not there).
class DuckDb {
 public:
  static Result<std::unique_ptr<DuckDb>> Open(const DuckOptions& options);
  ~DuckDb();
  DuckDb(const DuckDb&) = delete;
  DuckDb& operator=(const DuckDb&) = delete;

  // Runs one or more statements, whose rows don't matter.
  Status Execute(const std::string& sql);

  // Whether one statement gives rows that a table can be made of: SELECT, and what is short for it.
  Result<bool> IsQuery(const std::string& statement);

  // Calls `row` with each row of a query, whose columns must be of the types BIGINT, DOUBLE and
  // VARCHAR. All rows are in memory meanwhile. Ends with the first failure of `row`.
  using OnRow = std::function<Status(std::span<const DuckValue> values)>;
  Status Query(const std::string& sql, const OnRow& row);

  // The first column of the first row of a query; 0 if there is none.
  Result<int64_t> QueryInt(const std::string& sql);

  // Ends the statement under way, or does nothing. From any thread.
  void Interrupt();

 private:
  struct Handles;
  explicit DuckDb(std::unique_ptr<Handles> handles);
  std::unique_ptr<Handles> handles_;
};

// Ends what a database is doing, and everything it is asked afterwards, as soon as a stop is
// requested. One call of Interrupt might come a moment before the statement it is meant for: this
// repeats it.
class DuckInterrupter {
 public:
  DuckInterrupter(DuckDb& db, std::stop_token stop);

 private:
  std::jthread thread_;
};

// `name` as an SQL identifier, in double quotes; `text` as an SQL literal, in single ones.
std::string DuckIdentifier(std::string_view name);
std::string DuckLiteral(std::string_view text);

}  // namespace muster
