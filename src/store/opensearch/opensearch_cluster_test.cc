#include "store/opensearch/opensearch_cluster.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "muster/store.h"
#include "store/opensearch/opensearch_schema.h"
#include "support/hasty_env.h"
#include "support/http_server.h"

// A faulty wire, tested with a scripted server.

namespace muster::store {
namespace {

using testing::Answer;
using testing::HastyEnv;
using testing::HttpServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;

net::OpenSearchEndpoint AddressOf(const HttpServer& server) {
  std::string base = server.Url();
  base.pop_back();
  return {.base_url = base};
}

// The error for a request that always gets this response.
Error ErrorFor(int status, const std::string& body, bool writes) {
  HttpServer server([&](const HttpServerRequest&) { return Answer(status, body); });
  HastyEnv env;
  OpenSearchCluster client(AddressOf(server), env);
  const auto answer = client.Call({.method = "POST", .target = "/x", .writes = writes});
  EXPECT_FALSE(answer) << status << body;
  return answer ? Error{} : answer.error();
}

std::string Refusal(const std::string& type, const std::string& reason) {
  return R"({"error":{"type":")" + type + R"(","reason":")" + reason + R"("}})";
}

TEST(OpenSearchCluster, EveryRefusalHasACodeAndAHint) {
  struct Case {
    int status;
    std::string body;
    Code read, write;
  };
  const Case cases[] = {
      {401, "Unauthorized", Code::kPermission, Code::kPermission},
      {403, Refusal("security_exception", "no permissions for [indices:data/write]"),
       Code::kPermission, Code::kPermission},
      {403, Refusal("cluster_block_exception", "blocked by: [FORBIDDEN/5/index read-only (api)]"),
       Code::kReadOnly, Code::kReadOnly},
      {429,
       Refusal("cluster_block_exception",
               "[TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark]"),
       Code::kReadOnly, Code::kReadOnly},
      {503, Refusal("cluster_block_exception", "SERVICE_UNAVAILABLE/2/no master"),
       Code::kUnavailable, Code::kUnavailable},
      {503, Refusal("unavailable_shards_exception", "primary shard is not active"),
       Code::kUnavailable, Code::kUnavailable},
      {503, "<html>no upstream</html>", Code::kUnavailable, Code::kUnknownOutcome},
      {429, "slow down", Code::kUnavailable, Code::kUnavailable},
      {404, Refusal("index_not_found_exception", "no such index [x]"), Code::kUnavailable,
       Code::kUnavailable},
      {404, Refusal("index_not_found_exception", "no such index [x-5eb26aac0aef]"),
       Code::kUnavailable, Code::kUnavailable},
      {413, "", Code::kInvalid, Code::kInvalid},
      {302, "", Code::kPermission, Code::kPermission},
      {502, "", Code::kUnavailable, Code::kUnknownOutcome},
      {504, "", Code::kUnavailable, Code::kUnknownOutcome},
      {200, "<html>hello</html>", Code::kInvalid, Code::kUnknownOutcome},
      {400, Refusal("validation_exception", "this cluster has [9]/[9] maximum shards open"),
       Code::kFull, Code::kFull},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ErrorFor(c.status, c.body, false).code, c.read) << c.status << c.body;
    const Error error = ErrorFor(c.status, c.body, true);
    EXPECT_EQ(error.code, c.write) << c.status << c.body;
    EXPECT_FALSE(error.message.empty());
    EXPECT_TRUE(!error.hint.empty() || error.code == Code::kUnknownOutcome) << c.status << c.body;
  }
}

TEST(OpenSearchCluster, IndexIsGoneOnlyAfterRepeatedReports) {
  HttpServer server([&](const HttpServerRequest&) {
    return Answer(404, Refusal("index_not_found_exception", "no such index [x]"));
  });
  HastyEnv env;
  OpenSearchCluster client(AddressOf(server), env);
  const auto code = [&] { return client.Call({.target = "/x"}).error().code; };
  EXPECT_EQ(code(), Code::kUnavailable);
  env.Sleep(std::chrono::seconds(3), {});
  EXPECT_EQ(code(), Code::kUnavailable);
  env.Sleep(std::chrono::seconds(3), {});
  EXPECT_EQ(code(), Code::kNotFound);
  // After a long gap the state in between is unknown.
  env.Sleep(std::chrono::seconds(60), {});
  EXPECT_EQ(code(), Code::kUnavailable);
}

TEST(OpenSearchCluster, RetriesRequestsThatWereCertainlyNotApplied) {
  for (const std::string& busy : {std::string("HTTP 429"), std::string("HTTP 503")}) {
    std::atomic<int> count = 0;
    HttpServer server([&](const HttpServerRequest&) {
      if (++count >= 3) return Answer(200, "{}");
      return Answer(busy == "HTTP 429" ? 429 : 503, Refusal("busy_exception", "not now"));
    });
    OpenSearchCluster client(AddressOf(server), RealEnv());
    EXPECT_TRUE(client.Call({.method = "POST", .target = "/x", .writes = true})) << busy;
    EXPECT_EQ(count, 3);
  }
}

TEST(OpenSearchCluster, RetriesReadsThatTheClusterFailedButNotRefusals) {
  for (const int status : {429, 500, 502, 503, 504}) {
    std::atomic<int> count = 0;
    HttpServer server([&](const HttpServerRequest&) {
      return ++count >= 3 ? Answer(200, "{}") : Answer(status, "not now");
    });
    OpenSearchCluster client(AddressOf(server), RealEnv());
    EXPECT_TRUE(client.Call({.target = "/x"})) << status;
    EXPECT_EQ(count, 3) << status;
  }
  const std::vector<std::pair<int, std::string>> refusals = {
      {400, Refusal("index_closed_exception", "closed")},
      {403, Refusal("cluster_block_exception", "read-only")},
      {429, Refusal("cluster_block_exception", "disk usage exceeded flood-stage watermark")}};
  for (const auto& [status, body] : refusals) {
    HttpServer server([&](const HttpServerRequest&) { return Answer(status, body); });
    OpenSearchCluster client(AddressOf(server), RealEnv());
    EXPECT_FALSE(client.Call({.target = "/x"})) << body;
    EXPECT_EQ(server.requests().size(), 1U) << body;
  }
}

TEST(OpenSearchCluster, NeverResendsAWriteThatMayHaveBeenApplied) {
  for (const int status : {500, 502, 503, 504}) {
    std::atomic<int> count = 0;
    HttpServer server([&](const HttpServerRequest&) {
      ++count;
      return Answer(status, "a proxy");
    });
    OpenSearchCluster client(AddressOf(server), RealEnv());
    EXPECT_EQ(client.Call({.method = "POST", .target = "/x", .writes = true}).error().code,
              Code::kUnknownOutcome);
    EXPECT_EQ(count, 1) << status;
  }
}

TEST(OpenSearchCluster, SendsPasswordsAndKeysInTheHeaderOnly) {
  HttpServer server([](const HttpServerRequest&) { return Answer(401, "{}"); });
  setenv("MUSTER_TEST_OS_KEY", "sesame-sesame", 1);
  const std::string host = "127.0.0.1:" + std::to_string(server.port());
  for (const std::string& url :
       {"opensearch+http://me:${env:MUSTER_TEST_OS_KEY}@" + host,
        "opensearch+http://" + host + "?api_key=${env:MUSTER_TEST_OS_KEY}"}) {
    const auto store = OpenStore(url, RealEnv());
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, Code::kPermission);
    EXPECT_EQ(store.error().ToString().find("sesame"), std::string::npos);
  }
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].Header("Authorization"), "Basic bWU6c2VzYW1lLXNlc2FtZQ==");
  EXPECT_EQ(requests[1].Header("Authorization"), "ApiKey sesame-sesame");
}

class AwsOpenSearch : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test", 1);
  }
  void TearDown() override {
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
  }

  static net::OpenSearchEndpoint SignedAddress(const HttpServer& server) {
    net::OpenSearchEndpoint address = AddressOf(server);
    address.aws_region = "eu-central-1";
    return address;
  }
};

TEST_F(AwsOpenSearch, RequestsAreSignedForServiceEs) {
  HttpServer server([](const HttpServerRequest&) { return Answer(200, "{}"); });
  OpenSearchCluster client(SignedAddress(server), RealEnv());
  ASSERT_TRUE(client.Call({.target = "/_search?a=b"}));
  const std::string header = server.requests().at(0).Header("Authorization");
  EXPECT_TRUE(header.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")) << header;
  EXPECT_NE(header.find("/eu-central-1/es/aws4_request"), std::string::npos) << header;
}

TEST_F(AwsOpenSearch, ExpiredTokenIsLookedUpAgainOnce) {
  HttpServer server([](const HttpServerRequest&) {
    return Answer(403, R"({"message":"The security token included in the request is expired"})");
  });
  OpenSearchCluster client(SignedAddress(server), RealEnv());
  const Error error = client.Call({.target = "/"}).error();
  EXPECT_EQ(error.code, Code::kPermission);
  EXPECT_NE(error.message.find("expired"), std::string::npos);
  EXPECT_FALSE(error.hint.empty());
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(AwsOpenSearch, SignsWithTheServersTimeIfTheClockIsWrong) {
  HttpServer server([](const HttpServerRequest& request) {
    const std::string date = request.Header("X-Amz-Date");
    const std::vector<std::pair<std::string, std::string>> headers{
        {"Date", "Sun, 06 Nov 1994 08:49:37 GMT"}};
    const bool right = date.starts_with("19941106T0849");
    return Answer(right ? 200 : 403, right ? "{}" : R"({"message":"Signature expired"})", headers);
  });
  OpenSearchCluster client(SignedAddress(server), RealEnv());
  EXPECT_TRUE(client.Call({.target = "/"}));
}

TEST(OpenSearchCluster, TrustsOnlyTheConfiguredCa) {
  const testing::TlsIdentity identity;
  HttpServer server([](const HttpServerRequest&) { return Answer(200, "{}"); }, &identity);
  const std::string file = ::testing::TempDir() + "/ca-" + RealEnv().NewId();
  std::ofstream(file) << identity.pem();
  net::OpenSearchEndpoint address = AddressOf(server);
  ASSERT_TRUE(address.base_url.starts_with("https://"));
  EXPECT_EQ(OpenSearchCluster(address, RealEnv()).Call({.target = "/"}).error().code,
            Code::kPermission);
  address.ca_file = file;
  EXPECT_TRUE(OpenSearchCluster(address, RealEnv()).Call({.target = "/"}));
  std::remove(file.c_str());
}

TEST(OpenSearchCluster, TooOldAndOtherServersAreRejectedByName) {
  struct Case {
    std::string body;
    Code code;
  };
  for (const Case& c : {Case{R"({"version":{"number":"6.8.23"}})", Code::kIncompatible},
                        Case{R"({"version":{"number":"7.9.3"}})", Code::kIncompatible},
                        Case{R"({"hello":"world"})", Code::kInvalid}}) {
    HttpServer server([&](const HttpServerRequest&) { return Answer(200, c.body); });
    OpenSearchCluster client(AddressOf(server), RealEnv());
    const auto info = ReadOpenSearchServer(client);
    ASSERT_FALSE(info) << c.body;
    EXPECT_EQ(info.error().code, c.code) << c.body;
    EXPECT_FALSE(info.error().hint.empty());
  }
}

}  // namespace
}  // namespace muster::store
