#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster {

// The value of one field of a document, not converted: numbers stay the digits that they are.
struct FieldValue {
  enum class Kind : uint8_t { kAbsent, kNull, kBool, kNumber, kString, kStructure };
  Kind kind = Kind::kAbsent;
  bool escaped = false;   // a string whose JSON form holds a backslash
  std::string_view json;  // as it stands in the document
  std::string_view text;  // of a string: without quotes and escapes; else the same as `json`
};

// Takes documents apart for tables, field by field. Not thread-safe.
class FieldReader {
 public:
  explicit FieldReader(std::vector<std::string> columns);
  ~FieldReader();

  // The values of a JSON object in the order of the columns; of a field that is there twice the
  // last one. They live until the next call. An error is why the document does not fit: it is no
  // valid JSON object, or has a field that is no column.
  Result<std::span<const FieldValue>> Read(std::string_view body);

 private:
  struct Parser;

  int ColumnOf(std::string_view name, size_t expected) const;

  const std::vector<std::string> columns_;
  std::vector<FieldValue> values_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace muster
