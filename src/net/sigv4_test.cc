#include "net/sigv4.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/json.h"

namespace muster::net {
namespace {

constexpr const char* kSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
constexpr WallTime kNow = std::chrono::sys_days(std::chrono::year(2026) / 2 / 28) +
                          std::chrono::hours(23) + std::chrono::minutes(59) +
                          std::chrono::milliseconds(59'999);

// tests/data/sigv4.jsonl: botocore's results for odd paths, queries and headers.
TEST(SigV4, SignsEveryCaseLikeBotocore) {
  std::ifstream file(MUSTER_SIGV4_CASES);
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const auto parsed = ParseJson(line, MUSTER_SIGV4_CASES);
    ASSERT_TRUE(parsed) << parsed.error().ToString();
    const Json& data = *parsed;
    SCOPED_TRACE(data["name"].get<std::string>());
    HttpRequest request{.method = data["method"], .url = data["url"], .body = data["body"]};
    for (const Json& header : data["headers"]) request.headers.emplace_back(header[0], header[1]);
    const AwsCredentials credentials{"AKIDEXAMPLE", kSecret, data["token"]};
    const auto texts = SignRequest(request, credentials, {"eu-central-1", data["service"]}, kNow);
    ASSERT_TRUE(texts) << texts.error().ToString();
    EXPECT_EQ(texts->canonical_request, data["canonical_request"].get<std::string>());
    EXPECT_EQ(texts->string_to_sign, data["string_to_sign"].get<std::string>());
    EXPECT_EQ(texts->authorization, data["authorization"].get<std::string>());
  }
  EXPECT_GE(cases, 40);
}

TEST(SigV4, SigningAgainReplacesTheFirstSignature) {
  const SigV4Scope scope{"eu-central-1", "s3"};
  HttpRequest once{.url = "https://b.s3.eu-central-1.amazonaws.com/k", .headers = {{"A", "b"}}};
  HttpRequest twice = once;
  ASSERT_TRUE(SignRequest(twice, {"OLD", "old", "old token"}, scope, kNow - std::chrono::hours(1)));
  ASSERT_TRUE(SignRequest(once, {"AKIDEXAMPLE", kSecret}, scope, kNow));
  ASSERT_TRUE(SignRequest(twice, {"AKIDEXAMPLE", kSecret}, scope, kNow));
  EXPECT_EQ(twice.headers, once.headers);
}

TEST(SigV4, RejectsAUrlThatCannotBeSent) {
  HttpRequest request{.url = "ftp://example.com/"};
  EXPECT_EQ(SignRequest(request, {"AKIDEXAMPLE", kSecret}, {"r", "s"}, kNow).error().code,
            Code::kInvalid);
}

}  // namespace
}  // namespace muster::net
