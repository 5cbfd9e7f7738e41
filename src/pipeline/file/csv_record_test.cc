#include "pipeline/file/csv_record.h"

#include <gtest/gtest.h>

namespace muster::pipeline {
namespace {

std::vector<std::string> FieldsOf(const std::string& record) {
  CsvParser parser(',');
  const Status parsed = parser.Parse(record);
  if (!parsed) return {"error: " + parsed.error().message};
  std::vector<std::string> fields;
  for (const CsvField& field : parser.fields()) {
    fields.push_back(field.is_null() ? "null" : std::string(field.text));
  }
  return fields;
}

using Fields = std::vector<std::string>;

TEST(CsvParser, SplitsAtDelimiters) {
  EXPECT_EQ(FieldsOf("a,b,c"), (Fields{"a", "b", "c"}));
  EXPECT_EQ(FieldsOf("a,,"), (Fields{"a", "null", "null"}));
  EXPECT_EQ(FieldsOf(""), (Fields{"null"}));
  EXPECT_EQ(FieldsOf(" a , b "), (Fields{" a ", " b "}));
}

TEST(CsvParser, QuotesKeepDelimitersLineEndsAndQuotes) {
  EXPECT_EQ(FieldsOf(R"("a,b","c""d","",x)"), (Fields{"a,b", "c\"d", "", "x"}));
  EXPECT_EQ(FieldsOf("\"two\nlines\",2"), (Fields{"two\nlines", "2"}));
  EXPECT_EQ(FieldsOf(R"("""","""a""b""")"), (Fields{"\"", "\"a\"b\""}));
}

TEST(CsvParser, MisplacedQuoteIsAnError) {
  EXPECT_EQ(FieldsOf("a,5\" disk"), (Fields{"error: a quote inside unquoted text in column 2"}));
  EXPECT_EQ(FieldsOf("\"a\"b,c"), (Fields{"error: text after a closing quote in column 1"}));
  EXPECT_EQ(FieldsOf("x,\"a"), (Fields{"error: a quote that is not closed in column 2"}));
}

TEST(AppendCsvField, WrittenFieldsAreReadBack) {
  for (const std::string text : {"", "a", "a,b", "\"", "a\nb", "\r", " ", "\"\"", "ä"}) {
    std::string line;
    AppendCsvField(line, text, ',');
    line += ",end";
    EXPECT_EQ(FieldsOf(line), (Fields{text, "end"})) << line;
  }
}

}  // namespace
}  // namespace muster::pipeline
