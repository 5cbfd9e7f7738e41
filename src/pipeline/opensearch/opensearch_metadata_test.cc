// What the sink makes of metadata of old versions, on a real server.

#include <gtest/gtest.h>

#include "core/json.h"
#include "pipeline/opensearch/opensearch_sink.h"
#include "support/opensearch_server.h"
#include "support/shared_server.h"

namespace muster::pipeline {
namespace {

using testing::OpenSearchServer;

class OpenSearchOldMetadata : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = OpenSearchServer::Unavailable(); !why.empty()) GTEST_SKIP() << why;
    server_ = &OpenSearchServer::Shared();
    name_ = testing::UniqueName("old-metadata");
    const std::string url = "opensearch+http://127.0.0.1:" + std::to_string(server_->port());
    sink_ = OpenOpenSearchSink(ParseUrl(url).value(), RealEnv()).value();
  }

  // The index as the server has it after the sink has prepared for it.
  Json Prepared(const std::string& version, const std::string& metadata) {
    Json json = ParseJson(metadata, "metadata").value();
    json["cluster_version"] = version;
    const auto changes = sink_->Prepare({name_, ToJsonText(json)}, false);
    if (!changes) return changes.error().ToString();
    EXPECT_EQ(changes->size(), 1U);
    const Json index = ParseJson(server_->Call("GET", "/" + name_), "index").value()[name_];
    server_->Call("DELETE", "/" + name_);
    return index;
  }

  OpenSearchServer* server_ = nullptr;
  std::string name_;
  std::unique_ptr<Sink> sink_;
};

TEST_F(OpenSearchOldMetadata, StringsAndTypesOfElasticsearch2AreAdapted) {
  const Json index = Prepared("elasticsearch 2.4", R"({"mappings":{"book":{
      "_all":{"enabled":false},"properties":{
        "title":{"type":"string","fields":{"raw":{"type":"string","index":"not_analyzed"}}},
        "n":{"type":"long","index":"no","precision_step":16}}}},
      "settings":{"index.translog.flush_threshold_ops":"10","index.creation_date":"1"}})");
  const Json& properties = index["mappings"]["properties"];
  EXPECT_EQ(properties["title"]["type"], "text") << index;
  EXPECT_EQ(properties["title"]["fields"]["raw"]["type"], "keyword") << index;
  EXPECT_EQ(properties["n"]["index"], false) << index;
}

TEST_F(OpenSearchOldMetadata, LifecycleAndUnknownSettingsAreDropped) {
  const Json index =
      Prepared("elasticsearch 7.17", R"({"settings":{"index":{"lifecycle":{"name":"hot"},
      "never_heard_of":{"a":"1","b":"2"},"number_of_shards":"2"}},
      "mappings":{"properties":{"f":{"type":"flattened"}}}})");
  EXPECT_EQ(index["settings"]["index"]["number_of_shards"], "2") << index;
  EXPECT_FALSE(index["settings"]["index"].contains("never_heard_of")) << index;
  EXPECT_EQ(index["mappings"]["properties"]["f"]["type"], "flat_object") << index;
}

TEST_F(OpenSearchOldMetadata, MappingsOfEveryOldVersionAreAccepted) {
  for (const auto& [version, metadata] : {
           std::pair{"elasticsearch 1.7", R"({"mappings":{"t":{"_timestamp":{"enabled":true},
             "_source":{"compress":true},"properties":{
               "a":{"type":"string","index_analyzer":"standard","omit_norms":true,"include_in_all":true},
               "d":{"type":"date","format":"dateOptionalTime"},
               "g":{"type":"geo_point","lat_lon":true,"geohash_prefix":true}}}}})"},
           std::pair{"elasticsearch 5.6", R"({"mappings":{"t":{"_all":{"enabled":true},
             "dynamic_templates":[{"s":{"match_mapping_type":"string","mapping":{"type":"keyword","include_in_all":false}}}]}},
             "settings":{"index":{"mapper":{"dynamic":"true"},"analysis":{
               "analyzer":{"a":{"type":"custom","tokenizer":"standard","filter":["standard","stop"]}}}}}})"},
           std::pair{"elasticsearch 6.8",
                     R"({"mappings":{"_doc":{"_field_names":{"enabled":false}}},
             "settings":{"index":{"similarity":{"default":{"type":"classic"}},"soft_deletes":{"enabled":"false"}}}})"},
           std::pair{"elasticsearch 8.19", R"({"mappings":{"runtime":{"x":{"type":"long"}},
             "_source":{"mode":"stored"},"properties":{"v":{"type":"version"},"h":{"type":"histogram"},
             "c":{"type":"long","time_series_metric":"counter"}}},"settings":{"index":{"mode":"standard"}}})"},
       }) {
    const Json index = Prepared(version, metadata);
    EXPECT_TRUE(index.is_object()) << version << ": " << index;
  }
}

TEST_F(OpenSearchOldMetadata, TemplatesOfTheTargetDoNotChangeDocumentsOfASourcesIndex) {
  const std::string start = R"({"index_patterns":[")" + name_ + R"("],)";
  const std::string newer = "/_index_template/" + name_;
  const std::string older = "/_template/" + name_;
  const std::string plain = R"({"cluster_version":"opensearch 2.19","mappings":{}})";
  const std::string excludes =
      R"({"cluster_version":"opensearch 2.19","mappings":{"_source":{"excludes":["huge"]}}})";
  const std::string mappings = R"("mappings":{"_source":{"excludes":["secret"]}})";
  const std::string in_newer = start + R"("priority":500,"template":{)";
  struct Case {
    std::string path;
    std::string body;
    std::string source;
    bool is_foreseen = true;
  };
  for (const auto& [path, body, source, is_foreseen] : {
           Case{newer, in_newer + mappings + "}}", plain},
           Case{newer, in_newer + R"("settings":{"index.final_pipeline":"cut"}}})", excludes},
           Case{older, start + mappings + "}", plain},
           Case{older, start + mappings + "}", excludes, false},  // lists are joined
       }) {
    server_->Call("PUT", path, body);
    EXPECT_EQ(static_cast<bool>(sink_->Prepare({name_, source}, true)), !is_foreseen) << body;
    const auto prepared = sink_->Prepare({name_, source}, false);
    ASSERT_FALSE(prepared) << body;
    EXPECT_EQ(prepared.error().code, Code::kInvalid) << prepared.error().ToString();
    EXPECT_NE(prepared.error().message.find("templates of the target"), std::string::npos)
        << prepared.error().message;
    EXPECT_THROW(server_->Call("GET", "/" + name_), std::runtime_error) << "nothing is left";
    // They are what says how to index documents that come from elsewhere.
    EXPECT_TRUE(sink_->Prepare({name_, "{}"}, false)) << body;
    server_->Call("DELETE", "/" + name_);
    server_->Call("DELETE", path);
  }
  // What the source's index says counts.
  server_->Call("PUT", newer, in_newer + mappings + "}}");
  EXPECT_EQ(Prepared("opensearch 2.19", excludes)["mappings"]["_source"]["excludes"],
            Json::array({"huge"}));
  server_->Call("DELETE", newer);
}

TEST_F(OpenSearchOldMetadata, TemplateThatTheClusterRefusesDoesNotStopTheOthers) {
  const std::string pattern = R"("index_patterns":[")" + name_ + R"(-never-*"])";
  const std::string global =
      R"({"cluster_version":"elasticsearch 6.8","templates":{")" + name_ + R"(-bad":{)" + pattern +
      R"(,"mappings":{"doc":{"properties":{"a":{"type":"no-such-type"}}}}},")" + name_ +
      R"(-good":{)" + pattern +
      R"(,"mappings":{"doc":{"_all":{"enabled":false}}}},
                             "security-index-template":{"index_patterns":["x"]}}})";
  const auto changes = sink_->PrepareGlobal(global, false);
  ASSERT_TRUE(changes) << changes.error().ToString();
  ASSERT_EQ(changes->size(), 2U);
  EXPECT_NE((*changes)[0].change.find("is not created: "), std::string::npos);
  EXPECT_NE((*changes)[1].change.find("create template " + name_ + "-good"), std::string::npos);
  server_->Call("GET", "/_template/" + name_ + "-good");
  server_->Call("DELETE", "/_template/" + name_ + "-good");
}

TEST_F(OpenSearchOldMetadata, IndexWhoseTypesDisagreeIsRefusedBeforeAnythingIsCreated) {
  const auto changes = sink_->Prepare({name_, R"({"cluster_version":"elasticsearch 1.7","mappings":{
        "a":{"properties":{"x":{"type":"long"}}},"b":{"properties":{"x":{"type":"date"}}}}})"},
                                      true);
  ASSERT_FALSE(changes);
  EXPECT_NE(changes.error().message.find("disagree about field x"), std::string::npos);
  EXPECT_NE(changes.error().hint.find("muster metadata migrate"), std::string::npos);
}

}  // namespace
}  // namespace muster::pipeline
