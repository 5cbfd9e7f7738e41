#include "metadata/compare.h"

#include <gtest/gtest.h>

namespace muster::metadata {
namespace {

Differences Of(Kind kind, const std::string& wanted, const std::string& found) {
  return Compare(kind, Json::parse(wanted), Json::parse(found));
}

TEST(MetadataCompare, DifferentSpellingsOfServersAreEqual) {
  const auto equal = [](Kind kind, const std::string& wanted, const std::string& found) {
    const Differences differences = Of(kind, wanted, found);
    EXPECT_TRUE(differences.wanted.empty()) << differences.wanted[0];
    EXPECT_TRUE(differences.extra.empty()) << differences.extra[0];
  };
  equal(Kind::kIndex, R"({"settings":{"index.number_of_shards":2}})",
        R"({"settings":{"index.number_of_shards":"2","index.number_of_replicas":"1"}})");
  equal(Kind::kIndex,
        R"({"mappings":{"dynamic":false,"properties":{"a":{"type":"text","index":true}}}})",
        R"({"mappings":{"dynamic":"false","properties":{"a":{"type":"text"}}}})");
  equal(Kind::kIndex,
        R"({"mappings":{"properties":{"o":{"type":"object","properties":{"a":{"type":"long"}}}}}})",
        R"({"mappings":{"properties":{"o":{"properties":{"a":{"type":"long"}}}}},"aliases":{}})");
  equal(Kind::kIndex, R"({"aliases":{"a":{"routing":"1"}}})",
        R"({"aliases":{"a":{"index_routing":"1","search_routing":"1"}}})");
  equal(
      Kind::kTemplate, R"({"index_patterns":"a*","settings":{"index.codec":"best"}})",
      R"({"order":0,"index_patterns":["a*"],"settings":{"index.codec":"best"},"mappings":{},"aliases":{}})");
  equal(Kind::kIndexTemplate, R"({"index_patterns":["a*"],"template":{}})",
        R"({"index_patterns":["a*"],"composed_of":[]})");
}

TEST(MetadataCompare, DifferencesAreNamed) {
  const Differences differences = Of(
      Kind::kIndex,
      R"({"settings":{"index.codec":"best"},"mappings":{"properties":{"a":{"type":"text"}}},"aliases":{"x":{}}})",
      R"({"settings":{"index.codec":"fast"},"mappings":{"properties":{"a":{"type":"long"},"b":{"type":"date"}}}})");
  EXPECT_EQ(
      differences.wanted,
      (std::vector<std::string>{"aliases x: missing", "mappings properties.a.type: long, not text",
                                "settings index.codec: fast, not best"}));
  EXPECT_EQ(differences.extra,
            std::vector<std::string>{"mappings properties.b.type: only in the target"});
}

}  // namespace
}  // namespace muster::metadata
