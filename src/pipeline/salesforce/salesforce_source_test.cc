#include "pipeline/salesforce/salesforce_source.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <cstdlib>

#include "core/base64.h"
#include "core/json.h"
#include "muster/migrate.h"
#include "support/hasty_env.h"
#include "support/http_server.h"
#include "support/temporary_folder.h"

// The source against a fake server that follows Salesforce's documentation.
namespace muster::pipeline {
namespace {

using testing::Answer;
using testing::HastyEnv;
using testing::HttpServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;

class SalesforceTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("MUSTER_TEST_SF_SECRET", "s3cr3t&more", 1); }

  HttpServerReply Reply(const HttpServerRequest& request) {
    const std::string data = "/services/data/v60.0/";
    const std::string& target = request.target;
    if (target == "/services/oauth2/token") return Login(request);
    if (request.Header("Authorization") != "Bearer token-" + std::to_string(logins_)) {
      return Answer(401, R"([{"errorCode":"INVALID_SESSION_ID","message":"Session expired"}])");
    }
    if (busy_ > 0) {
      --busy_;
      return Answer(503, "");
    }
    if (target == data + "sobjects/User/describe" && !description_.empty()) {
      return Answer(200, description_);
    }
    if (target == data + "sobjects/User/describe") {
      return Answer(200, R"({"fields":[{"name":"Id","type":"id"},{"name":"Name","type":"string"},
                             {"name":"Address","type":"address"}]})");
    }
    if (target == data + "jobs/query" && request.method == "POST") {
      query_ = Json::parse(request.body)["query"];
      return Answer(200, R"({"id":"750x","state":"UploadComplete"})");
    }
    if (target == data + "jobs/query/750x") {
      ++polls_;
      if (polls_ < 3) return Answer(200, R"({"id":"750x","state":"InProgress"})");
      return Answer(200, R"({"id":"750x","state":")" + end_state_ +
                             R"(","errorMessage":"InvalidBatch : no such column"})");
    }
    const std::string results = data + "jobs/query/750x/results?maxRecords=2";
    if (target == results) {
      return Answer(200, "\"Id\",\"Name\"\n\"u1\",\"Ann\"\n\"u2\",\"a \"\"b\"\",\nc\"\n",
                    {{"Sforce-Locator", "L%1"}, {"Sforce-NumberOfRecords", "2"}});
    }
    if (target == results + "&locator=L%251") {
      if (expire_) {
        expire_ = false;
        ++logins_;  // invalidates the client's token
        return Answer(401, R"([{"errorCode":"INVALID_SESSION_ID","message":"Session expired"}])");
      }
      return Answer(200, "\"Id\",\"Name\"\n\"u3\",\"\"\n", {{"Sforce-Locator", "null"}});
    }
    if (target == data + "sobjects") {
      return Answer(200, R"({"sobjects":[{"name":"User","queryable":true},
                             {"name":"Hidden","queryable":false}]})");
    }
    return Answer(404, R"([{"errorCode":"NOT_FOUND","message":"nothing there"}])");
  }

  HttpServerReply Login(const HttpServerRequest& request) {
    login_ = request.body;
    if (refuse_) return Answer(400, R"({"error":"invalid_client","error_description":"wrong"})");
    ++logins_;
    return Answer(200, R"({"access_token":"token-)" + std::to_string(logins_) + "\"}");
  }

  std::string Url(
      const std::string& login = "client_id=app&client_secret=${env:MUSTER_TEST_SF_SECRET}") const {
    return "salesforce+http://127.0.0.1:" + std::to_string(server_.port()) +
           "/User?max_records=2&" + login;
  }

  // All documents from a position on; the first failure as text.
  std::vector<std::string> ReadAll(const std::string& url, const std::string& from = "") {
    std::vector<std::string> bodies;
    const auto source = OpenSource(url, env_);
    if (!source) return {source.error().ToString()};
    const auto partitions = (*source)->Partitions("User");
    const auto reader = (*source)->Read(partitions->front(), from, {});
    if (!reader) return {reader.error().ToString()};
    while (true) {
      const auto document = (*reader)->Next();
      if (!document) {
        bodies.push_back(document.error().ToString());
        return bodies;
      }
      if (!*document) return bodies;
      bodies.emplace_back((*document)->body);
      positions_.emplace_back((*document)->position);
    }
  }

  HastyEnv env_;
  int logins_ = 0;
  int polls_ = 0;
  int busy_ = 0;
  bool refuse_ = false;
  std::string description_;  // of the object, to override the default
  bool expire_ = false;
  std::string end_state_ = "JobComplete";
  std::string login_;
  std::string query_;
  std::vector<std::string> positions_;
  HttpServer server_{[this](const HttpServerRequest& request) { return Reply(request); }};
};

const std::vector<std::string> kAll = {R"({"Id":"u1","Name":"Ann"})",
                                       R"({"Id":"u2","Name":"a \"b\",\nc"})",
                                       R"({"Id":"u3","Name":null})"};

// A proxy, or another version: bad responses must not crash the client.
TEST_F(SalesforceTest, UnexpectedResponsesAreRefused) {
  for (const char* description :
       {"[]", "1", "{}", R"({"fields":1})", R"({"fields":[1,[],{"name":2}]})"}) {
    description_ = description;
    const auto source = OpenSource(Url(), env_);
    ASSERT_TRUE(source) << source.error().ToString();
    const auto described = (*source)->Describe("User");
    ASSERT_FALSE(described) << description;
    EXPECT_NE(described.error().message.find("has no fields to query"), std::string::npos)
        << described.error().message;
  }
}

TEST_F(SalesforceTest, AnObjectIsReadPageByPage) {
  EXPECT_EQ(ReadAll(Url()), kAll);
  EXPECT_EQ(query_, "SELECT Id, Name FROM User");
  EXPECT_EQ(login_, "grant_type=client_credentials&client_id=app&client_secret=s3cr3t%26more");
  EXPECT_EQ(polls_, 3);
  EXPECT_TRUE(std::is_sorted(positions_.begin(), positions_.end()));
}

TEST_F(SalesforceTest, ReadingContinuesFromAnyPositionOfTheSameJob) {
  ReadAll(Url());
  const std::vector<std::string> positions = positions_;
  query_.clear();
  EXPECT_EQ(ReadAll(Url(), positions[0]), (std::vector<std::string>{kAll[1], kAll[2]}));
  EXPECT_EQ(ReadAll(Url(), positions[1]), (std::vector<std::string>{kAll[2]}));
  EXPECT_EQ(ReadAll(Url(), positions[2]), std::vector<std::string>{});
  EXPECT_EQ(query_, "") << "no new job";
}

TEST_F(SalesforceTest, WithoutAnObjectAllQueryableOnesAreRead) {
  std::string url = Url();
  url.erase(url.find("/User"), 5);
  const auto source = OpenSource(url, env_);
  ASSERT_TRUE(source) << source.error().ToString();
  const auto all = (*source)->Collections();
  ASSERT_TRUE(all) << all.error().ToString();
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ(all->front().name, "User");
  const auto user = (*source)->Describe("User");
  ASSERT_TRUE(user && *user);
  EXPECT_NE((*user)->metadata.find("Name"), std::string::npos);
  EXPECT_FALSE((*source)->Describe("Usr")->has_value());
}

TEST_F(SalesforceTest, ColumnsAndRowsCanBeSelected) {
  ReadAll(Url() + "&columns=Id,Name&where=IsActive%20%3D%20true");
  EXPECT_EQ(query_, "SELECT Id, Name FROM User WHERE IsActive = true");
}

TEST_F(SalesforceTest, ExpiredSessionAndBusyServerAreRetried) {
  expire_ = true;
  busy_ = 2;
  EXPECT_EQ(ReadAll(Url()), kAll);
}

TEST_F(SalesforceTest, FailedJobReportsItsReason) {
  end_state_ = "Failed";
  EXPECT_NE(ReadAll(Url())[0].find("ended as Failed: InvalidBatch : no such column"),
            std::string::npos);
}

TEST_F(SalesforceTest, RejectedLoginHasAHint) {
  refuse_ = true;
  const std::string error = ReadAll(Url())[0];
  EXPECT_NE(error.find("refuses the login: invalid_client: wrong"), std::string::npos) << error;
  EXPECT_EQ(error.find("s3cr3t"), std::string::npos);
}

TEST_F(SalesforceTest, SecretsInTheUrlAndOddNamesAreRefused) {
  EXPECT_NE(ReadAll(Url("client_id=app&client_secret=hunter22"))[0].find("by reference"),
            std::string::npos);
  EXPECT_NE(ReadAll(Url("client_id=app"))[0].find("to log in"), std::string::npos);
  EXPECT_NE(ReadAll(Url() + "&columns=Id,(SELECT")[0].find("is not the name"), std::string::npos);
}

TEST_F(SalesforceTest, UserLogsInWithASignedJwt) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_RSA_gen(2048), EVP_PKEY_free);
  const testing::TemporaryFolder folder;
  FILE* file = fopen(folder.At("key.pem").c_str(), "w");
  PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  fclose(file);
  EXPECT_EQ(ReadAll(Url("client_id=app&user=ann%40acme.example&key=${file:" + folder.path() +
                        "/key.pem}")),
            kAll);
  const std::string mark = "jwt-bearer&assertion=";
  ASSERT_NE(login_.find(mark), std::string::npos) << login_;
  const std::string assertion = login_.substr(login_.find(mark) + mark.size());
  const auto decode = [](std::string text) {
    std::replace(text.begin(), text.end(), '-', '+');
    std::replace(text.begin(), text.end(), '_', '/');
    while (text.size() % 4 != 0) text += '=';
    return DecodeBase64(text).value_or("?");
  };
  const size_t first = assertion.find('.');
  const size_t second = assertion.rfind('.');
  const Json claims = Json::parse(decode(assertion.substr(first + 1, second - first - 1)));
  EXPECT_EQ(claims["iss"], "app");
  EXPECT_EQ(claims["sub"], "ann@acme.example");
  EXPECT_EQ(claims["aud"], "https://login.salesforce.com");
  const std::string text = assertion.substr(0, second);
  const std::string signature = decode(assertion.substr(second + 1));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  ASSERT_EQ(EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()), 1);
  EXPECT_EQ(EVP_DigestVerify(
                context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                signature.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size()),
            1);
}

}  // namespace
}  // namespace muster::pipeline
