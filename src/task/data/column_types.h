#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/result.h"

namespace muster::task {

// Infers the columns of documents, and for each the DuckDB type that holds all its values: VARCHAR
// for strings (whatever they contain), BIGINT, DOUBLE, BOOLEAN; JSON for nested or mixed values and
// for integers beyond 64 bits. Not thread-safe.
class ColumnTypes {
 public:
  static constexpr size_t kMaxColumns = 4'096;

  // Adds a column even if no document has it.
  void Expect(const std::string& name);

  // Adds the fields of a document, a valid JSON object. kInvalid: too many columns.
  Status Note(std::string_view object);

  // Names and types, in the order first seen.
  std::vector<std::pair<std::string, std::string>> Columns() const;

 private:
  enum class Kind { kNone, kText, kInteger, kReal, kBoolean, kJson };
  struct Column {
    std::string name;
    std::string raw_key;  // as in the documents, with escapes
    Kind kind = Kind::kNone;
  };
  static Kind KindOf(std::string_view value);
  static Kind Join(Kind a, Kind b);
  Result<size_t> Find(std::string_view raw_key, size_t guess);

  std::vector<Column> columns_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace muster::task
