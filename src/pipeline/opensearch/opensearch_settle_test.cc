// Data streams as targets, whose backing indices change while they are written to: canned responses
// show what a server rarely does on request.

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "core/json.h"
#include "pipeline/opensearch/opensearch_stream.h"
#include "support/hasty_env.h"
#include "support/http_server.h"

namespace muster::pipeline {
namespace {

using testing::Answer;
using testing::HttpServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;

// A data stream `logs` that writes each document to the index that the test names.
class StreamServer {
 public:
  std::vector<std::string> indices;
  std::map<std::string, std::string> goes_to;                         // document: index
  std::map<std::string, std::map<std::string, std::string>> content;  // index: document: body

  std::string problem;  // with which lookups end

  Result<std::vector<Refused>> TryToWrite(const std::vector<std::string>& ids) {
    Batch batch;
    for (const std::string& id : ids) {
      batch.Add({.id = id, .routing = {}, .body = "{\"n\":1}", .position = "9", .defect = {}});
    }
    return stream_.Write(bulk_, batch, {.deadline = env_.MonoNow() + std::chrono::minutes(5)});
  }

  void Write(const std::vector<std::string>& ids) {
    const auto refused = TryToWrite(ids);
    ASSERT_TRUE(refused) << refused.error().ToString();
    EXPECT_TRUE(refused->empty());
  }

 private:
  HttpServerReply Reply(const HttpServerRequest& request) {
    const std::lock_guard lock(mutex_);
    if (request.target.starts_with("/_data_stream/logs")) return Answer(200, Listed());
    if (request.target.starts_with("/_mget")) return Answer(200, Found(request.body));
    if (request.target.starts_with("/logs/_bulk")) return Answer(200, Created(request.body));
    if (request.method == "DELETE") {
      // /INDEX/_doc/ID?…
      const std::string path = request.target.substr(1, request.target.find('?') - 1);
      const size_t middle = path.find("/_doc/");
      content[path.substr(0, middle)].erase(path.substr(middle + 6));
      return Answer(200, "{}");
    }
    return Answer(404, "{}");
  }

  std::string Listed() const {
    Json list = Json::array();
    for (const std::string& index : indices) list.push_back(Json{{"index_name", index}});
    return ToJsonText(
        Json{{"data_streams", Json::array({Json{{"name", "logs"}, {"indices", list}}})}});
  }

  std::string Created(const std::string& body) {
    Json items = Json::array();
    std::istringstream lines(body);
    for (std::string action, text; std::getline(lines, action) && std::getline(lines, text);) {
      const std::string id = ParseJson(action, "action").value()["create"]["_id"];
      const std::string index = goes_to[id];
      if (index.empty()) {
        // What a cluster says of a document that a pipeline drops.
        items.push_back(
            Json{{"create", {{"status", 200}, {"_index", "logs"}, {"result", "noop"}}}});
        continue;
      }
      content[index][id] = text;
      items.push_back(Json{{"create",
                            {{"status", 201},
                             {"_index", index},
                             {"_seq_no", content[index].size()},
                             {"_primary_term", 1}}}});
    }
    return ToJsonText(Json{{"errors", false}, {"items", items}});
  }

  std::string Found(const std::string& body) const {
    Json docs = Json::array();
    const Json asked = ParseJson(body, "mget").value();
    for (const Json& one : asked["docs"]) {
      const auto index = content.find(one["_index"].get<std::string>());
      const bool is_there =
          index != content.end() && index->second.contains(one["_id"].get<std::string>());
      Json found{{"found", is_there}};
      if (!problem.empty()) found = Json{{"error", {{"type", problem}}}};
      if (is_there && problem.empty()) {
        found["_seq_no"] = 1;
        found["_primary_term"] = 1;
        found["_source"] = Json{{"n", 1}};
      }
      docs.push_back(std::move(found));
    }
    return ToJsonText(Json{{"docs", docs}});
  }

  std::mutex mutex_;
  testing::HastyEnv env_;
  Pace pace_{env_};
  HttpServer server_{[this](const HttpServerRequest& request) { return Reply(request); }};
  net::OpenSearchClient client_{
      net::OpenSearchEndpoint{.base_url = "http://127.0.0.1:" + std::to_string(server_.port())},
      env_};
  OpenSearchBulk bulk_ = OnlyCreating(OpenSearchBulk(client_, env_, pace_, "logs", {}, Fence()));
  OpenSearchStream stream_{client_, env_, "logs"};

  static OpenSearchBulk OnlyCreating(OpenSearchBulk bulk) {
    bulk.OnlyCreate();
    return bulk;
  }
};

// The list of indices is asked for again at the second document, and has one fewer at the front:
// the place of the first document's index is another then.
TEST(OpenSearchStreamSettles, DocumentsStayIfARolloverAndARetentionComeTogether) {
  StreamServer server;
  server.indices = {"logs-1", "logs-2", "logs-3"};
  server.goes_to = {{"x", "logs-3"}, {"a", "logs-3"}, {"b", "logs-4"}};
  server.Write({"x"});
  server.indices = {"logs-2", "logs-3", "logs-4"};
  server.Write({"a", "b"});
  EXPECT_EQ(server.content["logs-3"].size(), 2U) << "x and a";
  EXPECT_EQ(server.content["logs-4"].size(), 1U);
}

TEST(OpenSearchStreamSettles, ADocumentThatAnOlderIndexHasIsDeletedAgain) {
  StreamServer server;
  server.indices = {"logs-1", "logs-2"};
  server.goes_to = {{"x", "logs-1"}};
  server.Write({"x"});
  server.goes_to = {{"x", "logs-2"}};
  server.Write({"x"});
  EXPECT_EQ(server.content["logs-1"].size(), 1U);
  EXPECT_EQ(server.content["logs-2"].size(), 0U);
}

// Its item names no backing index, which would be looked for in vain.
TEST(OpenSearchStreamSettles, ADocumentThatAPipelineDropsIsSkipped) {
  StreamServer server;
  server.indices = {"logs-1"};
  server.goes_to = {{"x", "logs-1"}};
  const auto refused = server.TryToWrite({"x", "dropped"});
  ASSERT_TRUE(refused) << refused.error().ToString();
  ASSERT_EQ(refused->size(), 1U);
  EXPECT_EQ(refused->front().index, 1U);
  EXPECT_TRUE(refused->front().skipped);
  EXPECT_EQ(server.content["logs-1"].size(), 1U);
}

// A closed index is waited for: it may be opened again. A right is not.
TEST(OpenSearchStreamSettles, AnIndexThatMayNotBeReadIsAPermissionThatIsMissing) {
  for (const auto& [problem, code] : {std::pair{"security_exception", Code::kPermission},
                                      std::pair{"index_closed_exception", Code::kUnavailable}}) {
    StreamServer server;
    server.indices = {"logs-1", "logs-2"};
    server.goes_to = {{"x", "logs-2"}};
    server.problem = problem;
    const auto written = server.TryToWrite({"x"});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, code) << written.error().ToString();
    EXPECT_NE(written.error().message.find("index logs-1"), std::string::npos);
  }
}

}  // namespace
}  // namespace muster::pipeline
