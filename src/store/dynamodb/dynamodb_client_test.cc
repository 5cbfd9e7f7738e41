#include "store/dynamodb/dynamodb_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/json.h"
#include "support/dynamodb_gate.h"
#include "support/hasty_env.h"
#include "support/http_server.h"
#include "support/skewed_env.h"

namespace muster::store {
namespace {

using namespace std::chrono_literals;
using testing::Answer;
using testing::DynamoDbError;
using testing::HastyEnv;
using testing::HttpServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;
using testing::SkewedEnv;

// A time as in a Date header and a signature.
std::string Format(const char* format, WallTime time) {
  const time_t seconds = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

class DynamoDbClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("AWS_ACCESS_KEY_ID", "test", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret", 1);
    unsetenv("AWS_SESSION_TOKEN");
  }

  // A client of a server with a fixed response.
  Error ErrorAfter(const HttpServerReply& reply, const char* operation = "UpdateItem") {
    HttpServer server([&](const HttpServerRequest&) { return reply; });
    DynamoDbClient client = NewClient(server, hasty_);
    auto answer = client.Call(operation, Json::object());
    if (!answer) return answer.error();
    EXPECT_FALSE(answer->ok());
    return client.ErrorOf(operation, *answer);
  }

  static DynamoDbClient NewClient(const HttpServer& server, Env& env = RealEnv()) {
    std::string endpoint = server.Url();
    endpoint.pop_back();
    return DynamoDbClient({.region = "eu-west-1", .table = "orders", .endpoint = endpoint}, env,
                          {.request_timeout = 10s, .call_timeout = 20s});
  }

  HastyEnv hasty_;
};

TEST_F(DynamoDbClientTest, SendsASignedRequest) {
  HttpServer server([](const HttpServerRequest&) { return Answer(200, R"({"Item":{}})"); });
  auto client = NewClient(server);
  EXPECT_TRUE(client.Call("GetItem", Json{{"TableName", "orders"}}).value().ok());
  const HttpServerRequest request = server.requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/");
  EXPECT_EQ(request.Header("X-Amz-Target"), "DynamoDB_20120810.GetItem");
  EXPECT_EQ(request.Header("Content-Type"), "application/x-amz-json-1.0");
  EXPECT_EQ(request.body, R"({"TableName":"orders"})");
  const std::string authorization = request.Header("Authorization");
  EXPECT_NE(authorization.find("/eu-west-1/dynamodb/aws4_request"), std::string::npos);
  EXPECT_NE(authorization.find("SignedHeaders=content-type;host;x-amz-date;x-amz-target"),
            std::string::npos);
}

// tests/data/dynamodb_errors.jsonl: DynamoDB's errors, and ours for them.
TEST_F(DynamoDbClientTest, EveryRefusalHasAHint) {
  std::ifstream file(MUSTER_DYNAMODB_ERRORS);
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const Json data = ParseJson(line, MUSTER_DYNAMODB_ERRORS).value();
    SCOPED_TRACE(line);
    const Error error = ErrorAfter(DynamoDbError(data["status"], data["type"], data["message"]));
    EXPECT_EQ(CodeName(error.code), data["code"].get<std::string>());
    EXPECT_NE(error.ToString().find(data["says"].get<std::string>()), std::string::npos)
        << error.ToString();
    EXPECT_TRUE(error.message.starts_with("DynamoDB table orders in eu-west-1: ")) << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos);
    EXPECT_FALSE(error.hint.empty());
  }
  EXPECT_GT(cases, 10);
}

TEST_F(DynamoDbClientTest, OtherServersAreRecognised) {
  EXPECT_EQ(ErrorAfter(Answer(404, "<html>nothing here</html>")).code, Code::kUnavailable);
  EXPECT_EQ(ErrorAfter(Answer(200, "<html>log in</html>")).code, Code::kUnknownOutcome);
  EXPECT_EQ(ErrorAfter(Answer(200, "<html>log in</html>"), "GetItem").code, Code::kUnavailable);
  EXPECT_EQ(ErrorAfter(Answer(200, "[1]"), "Query").code, Code::kUnavailable);
  EXPECT_EQ(ErrorAfter(testing::CloseMidBody()).code, Code::kUnknownOutcome);
}

TEST_F(DynamoDbClientTest, ExpiredCredentialsAreLookedUpAgain) {
  const std::string file = ::testing::TempDir() + "/credentials-" + RealEnv().NewId();
  const auto write = [&](const std::string& key) {
    std::ofstream(file) << "[default]\naws_access_key_id = " << key
                        << "\naws_secret_access_key = not-a-secret\n";
  };
  unsetenv("AWS_ACCESS_KEY_ID");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  setenv("AWS_SHARED_CREDENTIALS_FILE", file.c_str(), 1);
  write("OLDKEY");
  HttpServer server([&](const HttpServerRequest& request) {
    if (request.Header("Authorization").find("NEWKEY") != std::string::npos) {
      return Answer(200, "{}");
    }
    write("NEWKEY");
    return DynamoDbError(400, "ExpiredTokenException", "The security token is expired");
  });
  auto client = NewClient(server);
  EXPECT_TRUE(client.Call("GetItem", Json::object()).value().ok());
  EXPECT_EQ(server.requests().size(), 2u);
  unsetenv("AWS_SHARED_CREDENTIALS_FILE");
  std::filesystem::remove(file);
}

TEST_F(DynamoDbClientTest, MissingCredentialsListTheSearchedPlaces) {
  unsetenv("AWS_ACCESS_KEY_ID");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials", 1);
  setenv("AWS_CONFIG_FILE", "/nowhere/config", 1);
  setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  HttpServer server([](const HttpServerRequest&) { return Answer(200, "{}"); });
  auto client = NewClient(server);
  const auto answer = client.Call("GetItem", Json::object());
  unsetenv("AWS_SHARED_CREDENTIALS_FILE");
  unsetenv("AWS_CONFIG_FILE");
  unsetenv("AWS_EC2_METADATA_DISABLED");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kInvalid);
  EXPECT_FALSE(answer.error().hint.empty());
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(DynamoDbClientTest, WrongClockIsCorrectedByTheServersTime) {
  for (const auto skew : {1h, -1h}) {
    HttpServer server([](const HttpServerRequest& request) {
      const WallTime now = RealEnv().WallNow();
      const std::string hour = Format("%Y%m%dT%H", now);
      const std::string other = Format("%Y%m%dT%H", now - 5min);
      const std::string said = request.Header("X-Amz-Date");
      const bool good = said.starts_with(hour) || said.starts_with(other);
      HttpServerReply reply =
          good ? Answer(200, "{}", {{"Date", Format("%a, %d %b %Y %H:%M:%S GMT", now)}})
               : Answer(400,
                        R"({"__type":"x#InvalidSignatureException","message":)"
                        R"("Signature expired: 20200101T000000Z is now earlier"})",
                        {{"Date", Format("%a, %d %b %Y %H:%M:%S GMT", now)}});
      return reply;
    });
    SkewedEnv env(skew);
    auto client = NewClient(server, env);
    EXPECT_TRUE(client.Call("GetItem", Json::object()).value().ok());
    const auto reading = client.ReadClock().value();
    EXPECT_LT(std::chrono::abs(reading.now - RealEnv().WallNow()), 3s);
    EXPECT_LE(reading.error, 2s);
  }
}

TEST_F(DynamoDbClientTest, PausesGrowWithinTheTimeout) {
  std::atomic<int> asked = 0;
  HttpServer server([&](const HttpServerRequest&) {
    ++asked;
    return DynamoDbError(400, "ThrottlingException", "slow down");
  });
  auto client = NewClient(server, hasty_);
  const MonoTime start = hasty_.MonoNow();
  EXPECT_EQ(client.Call("UpdateItem", Json::object()).error().code, Code::kUnavailable);
  EXPECT_GT(hasty_.MonoNow() - start, 15s);
  EXPECT_LT(hasty_.MonoNow() - start, 25s);
  EXPECT_GT(asked, 10);
  EXPECT_LT(asked, 100);
}

TEST_F(DynamoDbClientTest, RefusedConnectionIsUnavailableForACall) {
  DynamoDbClient client(
      {.region = "eu-west-1", .table = "orders", .endpoint = "http://127.0.0.1:1"}, hasty_);
  EXPECT_EQ(client.Call("UpdateItem", Json::object()).error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace muster::store
