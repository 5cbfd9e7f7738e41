#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster {

struct CsvField {
  std::string_view text;
  bool quoted = false;

  // As in PostgreSQL: nothing at all is null, a pair of quotes is an empty text.
  bool is_null() const { return text.empty() && !quoted; }
};

// The fields of records, one record after another; views live until the next. For one thread.
class CsvParser {
 public:
  explicit CsvParser(char delimiter) : delimiter_(delimiter) {}

  // kInvalid: a quote where none may be.
  Status Parse(std::string_view record);

  const std::vector<CsvField>& fields() const { return fields_; }

 private:
  void ParsePlain(std::string_view record);
  Status ParseQuoted(std::string_view record);

  const char delimiter_;
  std::vector<CsvField> fields_;
  std::string unquoted_;  // texts of fields with doubled quotes
};

// Appends a field: in quotes if it needs them, or if it is empty but not null.
void AppendCsvField(std::string& line, std::string_view text, char delimiter);

}  // namespace muster
