#include "metadata/cluster_version.h"

#include <gtest/gtest.h>

namespace muster::metadata {
namespace {

TEST(ClusterVersion, IsReadFromAClustersResponse) {
  const auto says = [](const std::string& text) {
    return ClusterVersion::FromRoot(Json::parse(text)).ToString();
  };
  EXPECT_EQ(says(R"({"version":{"number":"1.7.6"}})"), "elasticsearch 1.7");
  EXPECT_EQ(says(R"({"version":{"number":"7.10.2","build_flavor":"oss"}})"), "elasticsearch 7.10");
  EXPECT_EQ(says(R"({"version":{"distribution":"opensearch","number":"2.19.6"}})"),
            "opensearch 2.19");
  EXPECT_EQ(says(R"({"version":{"distribution":"opensearch","number":"7.10.2"}})"),
            "opensearch 1.0");
  EXPECT_EQ(says("{}"), "");
  EXPECT_EQ(says("[]"), "");
  EXPECT_EQ(says(R"({"version":{"number":"new"}})"), "");
}

TEST(ClusterVersion, IsReadFromASnapshot) {
  EXPECT_EQ(ClusterVersion::FromId(1'070'699).ToString(), "elasticsearch 1.7");
  EXPECT_EQ(ClusterVersion::FromId(6'082'399).ToString(), "elasticsearch 6.8");
  EXPECT_EQ(ClusterVersion::FromId(7'172'999).ToString(), "elasticsearch 7.17");
  EXPECT_EQ(ClusterVersion::FromId(8'536'000).ToString(), "elasticsearch 8.0");
  EXPECT_EQ(ClusterVersion::FromId(2'190'699 ^ 0x08000000).ToString(), "opensearch 2.19");
  EXPECT_EQ(ClusterVersion::FromId(0).ToString(), "");
}

TEST(ClusterVersion, IsTheSameAsText) {
  const ClusterVersion version{Engine::kOpenSearch, 3, 6};
  EXPECT_EQ(ClusterVersion::Parse(version.ToString()), version);
  for (const char* text : {"", "opensearch", "solr 9.1", "opensearch x", "opensearch 1.2 3"}) {
    EXPECT_FALSE(ClusterVersion::Parse(text).IsKnown()) << text;
  }
}

TEST(VersionRange, IncludesVersionsOfItsEngine) {
  const auto includes = [](const char* range, const char* version) {
    return VersionRange::Parse(range).value().Includes(ClusterVersion::Parse(version));
  };
  EXPECT_TRUE(includes("opensearch", "opensearch 1.0"));
  EXPECT_FALSE(includes("opensearch", "elasticsearch 7.0"));
  EXPECT_TRUE(includes("elasticsearch >=5 <7", "elasticsearch 5.0"));
  EXPECT_TRUE(includes("elasticsearch >=5 <7", "elasticsearch 6.8"));
  EXPECT_FALSE(includes("elasticsearch >=5 <7", "elasticsearch 7.0"));
  EXPECT_TRUE(includes("opensearch <=2.7", "opensearch 2.7"));
  EXPECT_FALSE(includes("opensearch >2.7", "opensearch 2.7"));
  EXPECT_TRUE(includes("opensearch >2.7", "opensearch 2.19"));
  for (const char* wrong :
       {"", "solr", "opensearch 2", "opensearch =2", "opensearch >", "opensearch >x"}) {
    EXPECT_FALSE(VersionRange::Parse(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace muster::metadata
