// Users that may do less than most.

#include <gtest/gtest.h>

#include "pipeline/opensearch/opensearch_source.h"
#include "support/http_server.h"

namespace muster::pipeline {
namespace {

using testing::Answer;
using testing::HttpServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;

// A data stream `logs` of one index, whose settings the user may not see.
HttpServerReply Reply(const HttpServerRequest& request) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (path.find("/_settings/") != std::string::npos) {
    return Answer(403,
                  R"({"error":{"reason":"no permissions for [indices:monitor/settings/get]"}})");
  }
  if (path == "/_data_stream/logs") {
    return Answer(200, R"({"data_streams":[{"name":"logs",)"
                       R"("indices":[{"index_name":".ds-logs-000002"}]}]})");
  }
  if (path.ends_with("/_stats/docs,store")) {
    return Answer(200, R"({"indices":{".ds-logs-000002":{"shards":{"0":[{"routing":{"primary":)"
                       R"(true},"docs":{"count":7},"store":{"size_in_bytes":9},)"
                       R"("seq_no":{"global_checkpoint":6,"max_seq_no":6}}]}}}})");
  }
  if (path.ends_with("/_count")) {
    const int count = request.method == "GET" ? 7 : 0;  // POST: those without a sequence number
    return Answer(200, R"({"count":)" + std::to_string(count) +
                           R"(,"_shards":{"total":1,"successful":1,"failed":0}})");
  }
  return Answer(path.ends_with("/_refresh") ? 200 : 404, "{}");
}

// It would pass for an index of which no shard is started, and be waited for.
TEST(OpenSearchRights, DataStreamIsKnownAlsoToAUserWhoMayNotSeeSettings) {
  const HttpServer server(Reply);
  const Url url = ParseUrl("opensearch+" + server.Url() + "logs").value();
  const auto source = OpenOpenSearchSource(url, RealEnv()).value();
  const auto partitions = source->Partitions("logs");
  ASSERT_TRUE(partitions) << partitions.error().ToString();
  ASSERT_EQ(partitions->size(), 2U);
  for (const Partition& one : *partitions) {
    EXPECT_EQ(one.collection, "logs");
    EXPECT_EQ(one.part, ".ds-logs-000002");
    EXPECT_EQ(one.shard, 20'000);
  }
  EXPECT_EQ(source->CountAgain(*partitions).value(), 7);
}

}  // namespace
}  // namespace muster::pipeline
