#include <gtest/gtest.h>

#include <map>

#include "metadata/job.h"

namespace muster::metadata {
namespace {

// Name → refusal, or its body if there is none.
std::map<std::string, std::string> Summary(const std::vector<SourceObject>& objects) {
  std::map<std::string, std::string> summary;
  for (const SourceObject& one : objects) {
    summary[std::string(kKinds.NameOf(one.object.kind)) + " " + one.object.name] =
        one.refusal.empty() ? ToJsonText(one.object.body) : one.refusal;
  }
  return summary;
}

TEST(MetadataObjects, AreReadFromTheSourcesGlobalMetadata) {
  const Json global = Json::parse(R"({"cluster_version":"elasticsearch 7.17",
      "templates":{"t":{"index_patterns":["a*"],"settings":{"index":{"lifecycle":{"name":"p"}}}}},
      "index_templates":{"i":{"index_patterns":["b*"],"template":{"settings":{"index.lifecycle.name":"p"}}}},
      "policies":{"p":{"policy":{}}},"pipelines":{"x":{}},"data_streams":{"s":{"name":"s"}},
      "hidden":["h"],"stores":["team_records-000001"],"unreadable":{"component_templates":"not allowed"}})");
  auto objects = Summary(GlobalObjects(global, false));
  EXPECT_EQ(objects.size(), 7U);
  EXPECT_EQ(objects["policy p"], R"({"policy":{},"index_patterns":["b*","a*"]})");
  EXPECT_EQ(objects["data_stream s"], R"({"name":"s"})");
  EXPECT_EQ(objects["component_template *"], "not allowed");
  EXPECT_EQ(objects["index team_records-000001"], "it is a Muster store");
  EXPECT_NE(objects["index h"].find("hidden"), std::string::npos);
  EXPECT_EQ(GlobalObjects(global, true).size(), 8U);
  EXPECT_TRUE(GlobalObjects(
                  Json::parse(R"({"templates":[],"index_templates":{"a":"b"},"hidden":{}})"), true)
                  .empty());
}

TEST(MetadataObjects, OnlyObjectsThatSelectedIndicesNeedAreKept) {
  const Json global = Json::parse(R"({
      "component_templates":{"used":{"template":{"settings":{"index.lifecycle.name":"used"}}},"other":{"template":{}}},
      "index_templates":{"used":{"index_patterns":["a-*","z"],"composed_of":["used"]},"other":{"index_patterns":["b*"],"composed_of":["other"]}},
      "templates":{"used":{"template":"a*"},"other":{"template":"c"}},
      "policies":{"used":{"policy":{}},"other":{"policy":{}}}})");
  std::vector<SourceObject> objects = GlobalObjects(global, false);
  objects.push_back({{Kind::kIndex, "a-1", Json{{"settings", Json::object()}}}});
  LeaveOutUnrelated(objects);
  for (const SourceObject& one : objects) {
    EXPECT_EQ(one.refusal.empty(), one.object.name != "other")
        << kKinds.NameOf(one.object.kind) << " " << one.object.name;
  }
}

}  // namespace
}  // namespace muster::metadata
