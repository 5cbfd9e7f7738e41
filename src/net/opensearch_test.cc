#include "net/opensearch.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/gzip.h"
#include "support/http_server.h"

namespace muster::net {
namespace {

using testing::Answer;
using testing::HttpServer;
using testing::HttpServerRequest;

Result<OpenSearchEndpoint> Endpoint(const std::string& text) {
  MUSTER_ASSIGN(const Url url, ParseUrl(text));
  return OpenSearchEndpoint::FromUrl(url, {"slices"});
}

std::string Refusal(const std::string& text) {
  const auto endpoint = Endpoint(text);
  return endpoint ? "" : endpoint.error().ToString();
}

class OpenSearchClientTest : public ::testing::Test {
 protected:
  // A client of a server that gives every request the same response.
  OpenSearchClient Client(int status, const std::string& body,
                          const std::vector<std::pair<std::string, std::string>>& headers = {},
                          const std::string& parameters = "", const std::string& user = "") {
    server_.emplace([=](const HttpServerRequest&) { return Answer(status, body, headers); });
    const auto endpoint =
        Endpoint("opensearch+http://" + user + "127.0.0.1:" + std::to_string(server_->port()) +
                 "/" + parameters);
    EXPECT_TRUE(endpoint) << endpoint.error().ToString();
    return OpenSearchClient(*endpoint, RealEnv());
  }

  Error ErrorFor(int status, const std::string& body, const std::string& method = "PUT") {
    OpenSearchClient client = Client(status, body);
    const auto json = client.SendForJson({.method = method, .path = "/books?x=1", .body = "{}"});
    EXPECT_FALSE(json);
    return json ? Error{} : json.error();
  }

  std::optional<HttpServer> server_;
};

TEST(OpenSearchEndpoint, ParsesTheAddressAndIgnoresCallersParameters) {
  const auto endpoint =
      Endpoint("opensearch+https://search.example:9200/books?slices=4&ca=/ca.pem");
  ASSERT_TRUE(endpoint) << endpoint.error().ToString();
  EXPECT_EQ(endpoint->base_url, "https://search.example:9200");
  EXPECT_EQ(endpoint->ca_file, "/ca.pem");
}

TEST(OpenSearchEndpoint, RejectsUnknownParametersByName) {
  EXPECT_NE(Refusal("opensearch+http://h/?slice=4").find("unknown parameter 'slice'"),
            std::string::npos);
  EXPECT_NE(Refusal("opensearch+http://h/?aws=eu-central-1&service=s3").find("service 's3'"),
            std::string::npos);
  EXPECT_NE(Refusal("opensearch+ftp://h/").find("scheme"), std::string::npos);
}

TEST(OpenSearchEndpoint, RejectsPlainTextSecretsWithoutShowingThem) {
  for (const char* text :
       {"opensearch+http://me:hunter22@h/", "opensearch+http://h/?api_key=hunter22",
        "opensearch+http://h/?token=hunter22"}) {
    const std::string refusal = Refusal(text);
    EXPECT_NE(refusal.find("plain text"), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find("hunter22"), std::string::npos) << refusal;
  }
}

TEST(OpenSearchEndpoint, RejectsTwoWaysToAuthenticate) {
  EXPECT_NE(Refusal("opensearch+http://me@h/?aws=eu-central-1").find("more than one way"),
            std::string::npos);
}

TEST(OpenSearchEndpoint, TakesCertificatesOnlyWhereTheyAreUsed) {
  const auto endpoint = Endpoint("opensearch+https://h/?cert=/c.pem&key=/c.key&insecure=yes");
  ASSERT_TRUE(endpoint) << endpoint.error().ToString();
  EXPECT_EQ(endpoint->cert_file, "/c.pem");
  EXPECT_EQ(endpoint->key_file, "/c.key");
  EXPECT_TRUE(endpoint->insecure);
  EXPECT_NE(Refusal("opensearch+https://h/?cert=/c.pem").find("private key"), std::string::npos);
  EXPECT_NE(Refusal("opensearch+https://h/?insecure=yes&ca=/ca.pem").find("contradict"),
            std::string::npos);
  EXPECT_NE(Refusal("opensearch+https://h/?insecure=maybe").find("insecure=maybe"),
            std::string::npos);
  for (const char* text : {"opensearch+http://h/?insecure=yes", "opensearch+http://h/?ca=/ca.pem",
                           "opensearch+http://h/?cert=/c.pem&key=/c.key"}) {
    EXPECT_NE(Refusal(text).find("need TLS"), std::string::npos) << text;
  }
}

TEST_F(OpenSearchClientTest, SignsInWithAPasswordAnApiKeyOrAToken) {
  setenv("MUSTER_TEST_SECRET", "s3cret-value", 1);
  OpenSearchClient by_password = Client(200, "{}", {}, "", "me:${env:MUSTER_TEST_SECRET}@");
  ASSERT_TRUE(by_password.SendForJson({.path = "/"}));
  EXPECT_EQ(server_->requests().at(0).Header("Authorization"), "Basic bWU6czNjcmV0LXZhbHVl");
  OpenSearchClient by_key = Client(200, "{}", {}, "?api_key=${env:MUSTER_TEST_SECRET}");
  ASSERT_TRUE(by_key.SendForJson({.path = "/"}));
  EXPECT_EQ(server_->requests().at(0).Header("Authorization"), "ApiKey s3cret-value");
  OpenSearchClient by_token = Client(200, "{}", {}, "?token=${env:MUSTER_TEST_SECRET}");
  ASSERT_TRUE(by_token.SendForJson({.path = "/"}));
  EXPECT_EQ(server_->requests().at(0).Header("Authorization"), "Bearer s3cret-value");
}

TEST_F(OpenSearchClientTest, SendsBodiesCompressedOnRequest) {
  OpenSearchClient client = Client(200, "{}");
  ASSERT_TRUE(client.SendForJson({.method = "POST",
                                  .path = "/_bulk",
                                  .body = "{\"index\":{}}\n{}\n",
                                  .content_type = "application/x-ndjson",
                                  .gzip = true}));
  const HttpServerRequest request = server_->requests().at(0);
  EXPECT_EQ(request.Header("Content-Encoding"), "gzip");
  EXPECT_EQ(request.Header("Content-Type"), "application/x-ndjson");
  EXPECT_EQ(Gunzip(request.body, 1000).value(), "{\"index\":{}}\n{}\n");
}

TEST_F(OpenSearchClientTest, ReturnsRetryAfterAndTheServersTime) {
  OpenSearchClient client =
      Client(429, "{}", {{"Retry-After", "7"}, {"Date", "Sun, 06 Nov 1994 08:49:37 GMT"}});
  const auto answer = client.Send({.path = "/"});
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_EQ(answer->retry_after, std::chrono::seconds(7));
  EXPECT_EQ(answer->date, WallTime(std::chrono::milliseconds(784111777000)));
}

TEST_F(OpenSearchClientTest, ErrorsHaveTheServersReasonAndACode) {
  const Error missing = ErrorFor(
      404, R"({"error":{"type":"index_not_found_exception","reason":"no such index [x]"}})");
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_NE(missing.message.find("PUT /books with 404: no such index [x]"), std::string::npos)
      << missing.message;
  EXPECT_EQ(ErrorFor(401, "Unauthorized").code, Code::kPermission);
  EXPECT_EQ(ErrorFor(403, R"({"error":{"type":1,"reason":[]}})").code, Code::kPermission);
  EXPECT_EQ(ErrorFor(403, R"({"error":{"type":"security_exception","reason":"no"}})").code,
            Code::kPermission);
  EXPECT_EQ(ErrorFor(403, R"({"error":{"type":"cluster_block_exception","reason":"r"}})").code,
            Code::kReadOnly);
  EXPECT_EQ(ErrorFor(429, R"({"error":{"type":"cluster_block_exception","reason":"r"}})").code,
            Code::kReadOnly);
  EXPECT_EQ(ErrorFor(403, R"({"error":{"type":"index_create_block_exception","reason":"r"}})").code,
            Code::kReadOnly);
  for (const int status : {429, 503}) {
    EXPECT_EQ(
        ErrorFor(status, R"({"error":{"type":"circuit_breaking_exception","reason":"r"}})").code,
        Code::kUnavailable);
  }
  const std::string closed = R"({"error":{"type":"index_closed_exception","reason":"closed"}})";
  EXPECT_EQ(ErrorFor(400, closed).code, Code::kReadOnly);
  EXPECT_EQ(ErrorFor(400, closed, "GET").code, Code::kUnavailable);
  EXPECT_NE(ErrorFor(400, closed).hint.find("_open"), std::string::npos);
  EXPECT_EQ(ErrorFor(400, R"({"error":{"type":"illegal_argument_exception","reason":)"
                          R"("no write index is defined for alias [x]. The write index"}})")
                .code,
            Code::kReadOnly);
  EXPECT_EQ(ErrorFor(429, "{}").code, Code::kUnavailable);
  EXPECT_EQ(ErrorFor(409, "{}").code, Code::kConflict);
  EXPECT_EQ(ErrorFor(400, R"({"error":"plain"})").code, Code::kInvalid);
}

TEST_F(OpenSearchClientTest, GatewayErrorForAWriteIsAnUnknownOutcome) {
  EXPECT_EQ(ErrorFor(502, "bad gateway", "PUT").code, Code::kUnknownOutcome);
  EXPECT_EQ(ErrorFor(502, "bad gateway", "GET").code, Code::kUnavailable);
  EXPECT_EQ(ErrorFor(503, "busy", "PUT").code, Code::kUnknownOutcome);
  EXPECT_EQ(ErrorFor(503, "busy", "GET").code, Code::kUnavailable);
  EXPECT_EQ(ErrorFor(503, R"({"error":{"type":"unavailable_shards_exception"}})", "PUT").code,
            Code::kUnavailable);
}

}  // namespace
}  // namespace muster::net
