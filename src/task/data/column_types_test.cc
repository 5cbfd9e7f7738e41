#include "task/data/column_types.h"

#include <gtest/gtest.h>

namespace muster::task {
namespace {

using Columns = std::vector<std::pair<std::string, std::string>>;

Columns ColumnsOf(std::initializer_list<std::string_view> documents) {
  ColumnTypes types;
  for (const std::string_view one : documents) EXPECT_TRUE(types.Note(one));
  return types.Columns();
}

TEST(ColumnTypes, EveryColumnHoldsAllItsValues) {
  EXPECT_EQ(ColumnsOf({R"({"text":"2024-01-01","int":1,"real":1,"yes":true,"none":null,"any":1})",
                       R"({"text":"x","int":-7,"real":1e3,"yes":false,"none":null,"any":"a"})"}),
            (Columns{{"text", "VARCHAR"},
                     {"int", "BIGINT"},
                     {"real", "DOUBLE"},
                     {"yes", "BOOLEAN"},
                     {"none", "VARCHAR"},
                     {"any", "JSON"}}));
}

TEST(ColumnTypes, NestedValuesAndIntegersBeyond64BitsStayJson) {
  EXPECT_EQ(ColumnsOf({R"({"a":[1],"b":{"c":1},"d":9223372036854775808})"}),
            (Columns{{"a", "JSON"}, {"b", "JSON"}, {"d", "JSON"}}));
}

TEST(ColumnTypes, FieldsMayComeInAnyOrderAndLater) {
  EXPECT_EQ(ColumnsOf({R"({"a":1})", R"({"b":"x","a":2})", R"({})"}),
            (Columns{{"a", "BIGINT"}, {"b", "VARCHAR"}}));
}

TEST(ColumnTypes, ExpectedColumnsExistWithoutDocuments) {
  ColumnTypes types;
  types.Expect("a");
  types.Expect("a");
  EXPECT_EQ(types.Columns(), (Columns{{"a", "VARCHAR"}}));
}

}  // namespace
}  // namespace muster::task
