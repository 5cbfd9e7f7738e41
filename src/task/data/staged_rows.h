#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/result.h"
#include "task/data/column_types.h"

namespace muster::task {

// What a file of JSON lines holds.
struct StagedRows {
  int64_t rows = 0;
  int64_t bytes = 0;
  std::string sha256 = {};
};

// Makes one durable file for its owner of the pieces, in this order, and notes the types of their
// columns. kConflict: the file exists. kCancelled: stopped.
Result<StagedRows> JoinRows(const std::vector<std::string>& pieces, const std::string& path,
                            ColumnTypes& types, const std::stop_token& stop);

// The letters of rows that cannot be read.
struct StagedLetters {
  int64_t count = 0;
  std::string first_reason = {};
};

// Replaces the file `to` by the letters in `from`, each once: after a crash some are there twice.
// Without letters there is no file. `fresh` is a name for the file while it is written.
Result<StagedLetters> PublishLetters(const std::string& from, const std::string& fresh,
                                     const std::string& to);

// The SHA-256 of a file, in hex.
Result<std::string> Sha256OfFile(const std::string& path);

}  // namespace muster::task
