// AWS's own test suite for Signature Version 4: a folder per case with the request (.req), the
// canonical request (.creq), the string to sign (.sts) and the Authorization header (.authz).

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "net/sigv4.h"

namespace muster::net {
namespace {

namespace fs = std::filesystem;

constexpr WallTime kNow = std::chrono::sys_days(std::chrono::year(2015) / 8 / 30) +
                          std::chrono::hours(12) + std::chrono::minutes(36);

std::string Read(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

HttpRequest ParseRequest(const std::string& text) {
  HttpRequest request;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const size_t target = line.find(' ') + 1;
  request.method = line.substr(0, target - 1);
  request.url =
      "https://example.amazonaws.com" + line.substr(target, line.rfind(" HTTP/1.1") - target);
  while (std::getline(lines, line) && !line.empty()) {
    if (line[0] == ' ') {  // continues the previous value
      request.headers.back().second += line;
      continue;
    }
    const size_t colon = line.find(':');
    request.headers.emplace_back(line.substr(0, colon), line.substr(colon + 1));
  }
  request.body.assign(std::istreambuf_iterator<char>(lines), {});
  return request;
}

TEST(SigV4Vectors, EveryAwsCaseIsSignedExactly) {
  int cases = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(MUSTER_SIGV4_VECTORS)) {
    if (entry.path().extension() != ".req") continue;
    SCOPED_TRACE(entry.path().stem().string());
    const auto expected = [&](const char* extension) {
      return Read(fs::path(entry.path()).replace_extension(extension));
    };
    HttpRequest request = ParseRequest(Read(entry.path()));
    AwsCredentials credentials{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
    // The token is not part of the incoming request, but of the signed one.
    static constexpr std::string_view kTokenLine = "x-amz-security-token:";
    const std::string canonical = expected(".creq");
    if (const size_t at = canonical.find(kTokenLine); at != canonical.npos) {
      const size_t begin = at + kTokenLine.size();
      credentials.session_token = canonical.substr(begin, canonical.find('\n', begin) - begin);
    }
    const auto texts = SignRequest(request, credentials, {"us-east-1", "service"}, kNow);
    ASSERT_TRUE(texts) << texts.error().ToString();
    EXPECT_EQ(texts->canonical_request, canonical);
    EXPECT_EQ(texts->string_to_sign, expected(".sts"));
    EXPECT_EQ(texts->authorization, expected(".authz"));
    ++cases;
  }
  EXPECT_GE(cases, 30);
}

}  // namespace
}  // namespace muster::net
