#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster::pipeline {

struct CsvField {
  std::string_view text;
  bool quoted = false;

  // As in PostgreSQL: an unquoted empty field is null, "" is an empty string.
  bool is_null() const { return text.empty() && !quoted; }
};

// Parses one record at a time; views are valid until the next. For one thread.
class CsvParser {
 public:
  explicit CsvParser(char delimiter) : delimiter_(delimiter) {}

  // kInvalid: a misplaced quote.
  Status Parse(std::string_view record);

  const std::vector<CsvField>& fields() const { return fields_; }

 private:
  void ParsePlain(std::string_view record);
  Status ParseQuoted(std::string_view record);

  const char delimiter_;
  std::vector<CsvField> fields_;
  std::string unquoted_;  // fields with doubled quotes, unescaped
};

// Appends a field, quoted if needed or if it is empty but not null.
void AppendCsvField(std::string& line, std::string_view text, char delimiter);

}  // namespace muster::pipeline
