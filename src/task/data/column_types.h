#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/result.h"

namespace muster::task {

// Finds out which columns documents have and which type of DuckDB's holds all values of each:
// VARCHAR for texts (whatever they look like), BIGINT, DOUBLE, BOOLEAN; JSON for what is nested,
// mixed, or an integer beyond 64 bits. Not thread-safe.
class ColumnTypes {
 public:
  static constexpr size_t kMaxColumns = 4'096;

  // A column that is there even if no document has it.
  void Expect(const std::string& name);

  // Notes the fields of a document, a valid JSON object. kInvalid: there are too many columns.
  Status Note(std::string_view object);

  // In the order in which they were seen.
  std::vector<std::pair<std::string, std::string>> Columns() const;

 private:
  enum class Kind { kNone, kText, kInteger, kReal, kBoolean, kJson };
  struct Column {
    std::string name;
    std::string raw_key;  // as in the documents, escapes and all
    Kind kind = Kind::kNone;
  };
  static Kind KindOf(std::string_view value);
  static Kind Join(Kind a, Kind b);
  Result<size_t> Find(std::string_view raw_key, size_t guess);

  std::vector<Column> columns_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace muster::task
