#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster::pipeline {

// One field of a document, unconverted: numbers keep their digits.
struct FieldValue {
  enum class Kind : uint8_t { kAbsent, kNull, kBool, kNumber, kString, kStructure };
  Kind kind = Kind::kAbsent;
  bool escaped = false;   // a string whose JSON contains a backslash
  std::string_view json;  // verbatim
  std::string_view text;  // of a string: unquoted and unescaped; otherwise the same as `json`
};

// Splits documents into fields for tables. Not thread-safe.
class FieldReader {
 public:
  explicit FieldReader(std::vector<std::string> columns);
  ~FieldReader();

  // The values of a JSON object in column order; for a duplicate field the last one. Valid until
  // the next call. An error says why the document does not fit: not a valid JSON object, or a field
  // without a column.
  Result<std::span<const FieldValue>> Read(std::string_view body);

 private:
  struct Parser;

  int ColumnOf(std::string_view name, size_t expected) const;

  const std::vector<std::string> columns_;
  std::vector<FieldValue> values_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace muster::pipeline
