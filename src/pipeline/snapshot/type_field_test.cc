#include "pipeline/snapshot/type_field.h"

#include <gtest/gtest.h>

namespace muster::pipeline {
namespace {

Document Of(std::string_view id, std::string_view body) {
  Document document;
  document.id = id;
  document.body = body;
  return document;
}

std::string BodyWith(std::string_view body) {
  TypeField field("kind");
  Document document = Of("1", body);
  field.Apply("post", document);
  return std::string(document.body);
}

TEST(TypeField, TheTypeIsAFieldAndBeginsTheId) {
  TypeField field("kind");
  Document document = Of("a#b", R"({"n":12345678901234567890})");
  document.routing = "r";
  field.Apply("po\"st", document);
  EXPECT_EQ(document.id, "po\"st#a#b");
  EXPECT_EQ(document.routing, "r");
  EXPECT_EQ(document.body, R"({"kind":"po\"st","n":12345678901234567890})");
  EXPECT_EQ(document.defect, "");
}

TEST(TypeField, EmptyAndSpacedObjectsStayJson) {
  EXPECT_EQ(BodyWith("{}"), R"({"kind":"post"})");
  EXPECT_EQ(BodyWith(" { } "), R"({"kind":"post" } )");
  EXPECT_EQ(BodyWith(" { \"a\" : 1 }"), R"({"kind":"post", "a" : 1 })");
}

TEST(TypeField, ADocumentThatHasTheFieldIsADeadLetter) {
  TypeField field("kind");
  Document document = Of("1", R"({"a":1,"k\u0069nd":2})");
  field.Apply("post", document);
  EXPECT_NE(document.defect.find("it has a field 'kind' already"), std::string_view::npos);
  EXPECT_EQ(document.body, R"({"a":1,"k\u0069nd":2})");
}

TEST(TypeField, ADeletedDocumentHasTheSameId) {
  TypeField field("kind");
  Document document = Of("1", "{}");
  document.deleted = true;
  field.Apply("post", document);
  EXPECT_EQ(document.id, "post#1");
  EXPECT_EQ(document.body, "{}");
}

TEST(TypeField, AFieldIsOfTheTopLevel) {
  EXPECT_TRUE(TypeField::Check("kind"));
  for (const char* name : {"", "_type", "a.b"}) {
    EXPECT_EQ(TypeField::Check(name).error().code, Code::kInvalid) << name;
  }
}

}  // namespace
}  // namespace muster::pipeline
