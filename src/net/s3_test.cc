#include "net/s3.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "support/http_server.h"

namespace muster::net {
namespace {

using testing::Answer;
using testing::HttpServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;

class S3Test : public ::testing::Test {
 protected:
  S3Test() {
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
  }

  S3Client& Serve(HttpServer::Handler handler) {
    server_.emplace(std::move(handler));
    client_.emplace(S3Location{.bucket = "backups",
                               .prefix = "es/",
                               .endpoint = "http://127.0.0.1:" + std::to_string(server_->port()),
                               .path_style = true},
                    RealEnv());
    return *client_;
  }

  std::optional<HttpServer> server_;
  std::optional<S3Client> client_;
};

TEST_F(S3Test, ReadsExactlyTheRequestedRange) {
  S3Client& client = Serve([](const HttpServerRequest&) { return Answer(206, "56789"); });
  const auto bytes = client.Read("indices/a b/0", 5, 5);
  ASSERT_TRUE(bytes) << bytes.error().ToString();
  EXPECT_EQ(*bytes, "56789");
  const HttpServerRequest request = server_->requests().at(0);
  EXPECT_EQ(request.target, "/backups/es/indices/a%20b/0");
  EXPECT_EQ(request.Header("Range"), "bytes=5-9");
  EXPECT_NE(request.Header("Authorization").find("/s3/aws4_request"), std::string::npos);
  EXPECT_NE(request.Header("Authorization").find("range"), std::string::npos) << "it is signed";
}

TEST_F(S3Test, TruncatedObjectIsCorrupt) {
  S3Client& shorter = Serve([](const HttpServerRequest&) { return Answer(206, "567"); });
  EXPECT_EQ(shorter.Read("x", 5, 5).error().code, Code::kCorrupt);
  S3Client& behind = Serve([](const HttpServerRequest&) {
    return Answer(416, "<Error><Code>InvalidRange</Code></Error>");
  });
  EXPECT_EQ(behind.Read("x", 5, 5).error().code, Code::kCorrupt);
}

TEST_F(S3Test, TransientFailuresAreRetried) {
  std::atomic<int> requests = 0;
  S3Client& client = Serve([&](const HttpServerRequest&) {
    switch (++requests) {
      case 1:
        return Answer(503, "<Error><Code>SlowDown</Code></Error>");
      case 2:
        return testing::CloseMidBody();
      default:
        return Answer(206, "ok");
    }
  });
  EXPECT_EQ(client.Read("x", 0, 2).value(), "ok");
  EXPECT_EQ(requests, 3);
}

TEST_F(S3Test, RefusalsHaveTheServersReasonAndAreNotRetried) {
  S3Client& client = Serve([](const HttpServerRequest&) {
    return Answer(403, "<Error><Code>AccessDenied</Code><Message>no way</Message></Error>");
  });
  const auto bytes = client.Read("x", 0, 2);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::kPermission);
  EXPECT_NE(bytes.error().message.find("s3://backups/es/x: status 403, AccessDenied: no way"),
            std::string::npos)
      << bytes.error().message;
  EXPECT_EQ(server_->requests().size(), 1U);
}

TEST_F(S3Test, ExpiredCredentialsAreLookedUpAgainOnceAndAreNoWrongRequest) {
  S3Client& client = Serve([](const HttpServerRequest&) {
    return Answer(400, "<Error><Code>ExpiredToken</Code><Message>expired</Message></Error>");
  });
  const auto bytes = client.Read("x", 0, 2);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::kPermission);
  EXPECT_NE(bytes.error().hint.find("renew"), std::string::npos) << bytes.error().hint;
  EXPECT_EQ(server_->requests().size(), 2U);
}

TEST_F(S3Test, ListsAllPagesWithDecodedNames) {
  S3Client& client = Serve([](const HttpServerRequest& request) {
    if (request.target.find("continuation-token=next%2Bpage") == std::string::npos) {
      return Answer(200,
                    "<ListBucketResult><Contents><Key>es/index-3</Key></Contents>"
                    "<CommonPrefixes><Prefix>es/indices/</Prefix></CommonPrefixes>"
                    "<IsTruncated>true</IsTruncated>"
                    "<NextContinuationToken>next+page</NextContinuationToken></ListBucketResult>");
    }
    return Answer(200,
                  "<ListBucketResult><Contents><Key>es/a%26b+c</Key></Contents>"
                  "<IsTruncated>false</IsTruncated></ListBucketResult>");
  });
  const auto names = client.List();
  ASSERT_TRUE(names) << names.error().ToString();
  EXPECT_EQ(*names, (std::vector<std::string>{"a&b c", "index-3", "indices"}));
}

TEST_F(S3Test, UrlNamesTheBucket) {
  const auto at = S3Location::FromUrl(
      ParseUrl(
          "snapshot+s3://backups/es/prod?endpoint=https://minio.example:9000/&region=eu-west-1")
          .value());
  ASSERT_TRUE(at) << at.error().ToString();
  EXPECT_EQ(at->bucket, "backups");
  EXPECT_EQ(at->prefix, "es/prod/");
  EXPECT_EQ(at->endpoint, "https://minio.example:9000");
  EXPECT_EQ(at->region, "eu-west-1");
  EXPECT_TRUE(at->path_style);
  EXPECT_FALSE(S3Location::FromUrl(ParseUrl("s3:///x").value()));
  EXPECT_FALSE(S3Location::FromUrl(ParseUrl("s3://b/x?path_style=maybe").value()));
}

}  // namespace
}  // namespace muster::net
