#include "net/aws_credentials.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "core/secrets.h"
#include "core/virtual_env.h"
#include "support/http_server.h"
#include "support/temporary_folder.h"

namespace muster::net {
namespace {

using namespace std::chrono_literals;
using testing::Answer;
using testing::HttpServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;

constexpr WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + 12h;
constexpr const char* kNowhere = "http://127.0.0.1:1";

class AwsCredentialChainTest : public ::testing::Test {
 protected:
  AwsCredentialChainTest() {
    std::filesystem::create_directory(home_ + "/.aws");
    variables_["HOME"] = home_;
  }

  AwsCredentialChain Chain() {
    return AwsCredentialChain(env_,
                              {.variable = [this](const char* name) { return variables_[name]; },
                               .container_host = container_host_,
                               .metadata_host = kNowhere});
  }

  Result<AwsCredentials> Get() { return Chain().Get(); }

  std::string IdOf(const Result<AwsCredentials>& credentials) {
    EXPECT_TRUE(credentials) << credentials.error().ToString();
    return credentials ? credentials->access_key_id : "";
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(home_ + "/" + name) << text;
  }

  VirtualEnv env_{kNoon};
  const testing::TemporaryFolder folder_;
  const std::string home_ = folder_.path();
  std::string container_host_ = kNowhere;
  std::map<std::string, std::string> variables_;
};

Code CodeOf(const Result<AwsCredentials>& result) {
  EXPECT_FALSE(result);
  return result ? Code::kInternal : result.error().code;
}

// Expires `at`, in AWS's format.
std::string CredentialsJson(const std::string& id, const std::string& at) {
  return R"({"Code":"Success","AccessKeyId":")" + id + R"(","SecretAccessKey":"secret-of-)" + id +
         R"(","Token":"token-of-)" + id + R"(","Expiration":")" + at + "\"}";
}

TEST_F(AwsCredentialChainTest, MissingCredentialsExplainWhereToSetThem) {
  const auto none = Get();
  EXPECT_EQ(CodeOf(none), Code::kInvalid);
  EXPECT_NE(none.error().hint.find("AWS_ACCESS_KEY_ID"), std::string::npos);
}

TEST_F(AwsCredentialChainTest, EnvironmentComesFirst) {
  Write(".aws/credentials",
        "[default]\naws_access_key_id=FILE\naws_secret_access_key=file-secret\n");
  variables_["AWS_ACCESS_KEY_ID"] = "ENVIRONMENT";
  variables_["AWS_SECRET_ACCESS_KEY"] = "environment-secret";
  variables_["AWS_SESSION_TOKEN"] = "environment-token";
  const auto found = Get();
  EXPECT_EQ(IdOf(found), "ENVIRONMENT");
  EXPECT_EQ(found->secret_access_key, "environment-secret");
  EXPECT_EQ(found->session_token, "environment-token");
  EXPECT_EQ(found->expires, std::nullopt);
  EXPECT_EQ(Redact("environment-secret environment-token"), "*** ***");
}

TEST_F(AwsCredentialChainTest, HalfAPairIsInvalid) {
  variables_["AWS_ACCESS_KEY_ID"] = "ENVIRONMENT";
  EXPECT_EQ(CodeOf(Get()), Code::kInvalid);
  variables_["AWS_ACCESS_KEY_ID"] = "";
  Write(".aws/credentials", "[default]\naws_secret_access_key = half-a-secret\n");
  const auto half = Get();
  EXPECT_EQ(CodeOf(half), Code::kInvalid);
  EXPECT_EQ(half.error().ToString().find("half-a-secret"), std::string::npos);
}

TEST_F(AwsCredentialChainTest, ProfilesAreReadFromBothFiles) {
  Write(".aws/credentials",
        "# comment\r\n[default]\r\naws_access_key_id = DEFAULT\r\n"
        "aws_secret_access_key = default=secret\r\n\r\n"
        "[ other ]\n; comment\naws_access_key_id=OTHER\naws_secret_access_key=other-secret\n"
        "aws_session_token=other-token");
  Write(".aws/config",
        "[default]\nregion = eu-central-1\n"
        "[profile third]\ns3 =\n  aws_access_key_id = NESTED\naws_access_key_id = THIRD\n"
        "aws_secret_access_key = third-secret\n");
  const auto found = Get();
  EXPECT_EQ(IdOf(found), "DEFAULT");
  EXPECT_EQ(found->secret_access_key, "default=secret");
  variables_["AWS_PROFILE"] = "other";
  EXPECT_EQ(IdOf(Get()), "OTHER");
  EXPECT_EQ(Get()->session_token, "other-token");
  variables_["AWS_PROFILE"] = "third";
  EXPECT_EQ(IdOf(Get()), "THIRD");
  EXPECT_EQ(Redact("default=secret other-secret other-token third-secret"), "*** *** *** ***");
}

TEST_F(AwsCredentialChainTest, FilesCanBeMoved) {
  Write("keys", "[default]\naws_access_key_id=KEYS\naws_secret_access_key=keys-secret\n");
  Write("settings", "[default]\naws_access_key_id=SETTINGS\naws_secret_access_key=set-secret\n");
  variables_["AWS_CONFIG_FILE"] = home_ + "/settings";
  EXPECT_EQ(IdOf(Get()), "SETTINGS");
  variables_["AWS_SHARED_CREDENTIALS_FILE"] = home_ + "/keys";
  EXPECT_EQ(IdOf(Get()), "KEYS");
}

TEST_F(AwsCredentialChainTest, MissingProfileIsInvalid) {
  Write(".aws/credentials", "[default]\naws_access_key_id=A\naws_secret_access_key=b\n");
  variables_["AWS_PROFILE"] = "absent";
  const auto missing = Get();
  EXPECT_EQ(CodeOf(missing), Code::kInvalid);
  EXPECT_NE(missing.error().message.find("absent"), std::string::npos);
}

TEST_F(AwsCredentialChainTest, ProfileThatAssumesARoleIsRejectedWithAHint) {
  Write(".aws/config", "[profile x]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = y\n");
  variables_["AWS_PROFILE"] = "x";
  const auto refused = Get();
  EXPECT_EQ(CodeOf(refused), Code::kInvalid);
  EXPECT_NE(refused.error().hint.find("export-credentials"), std::string::npos);
}

TEST_F(AwsCredentialChainTest, ForgetReadsTheFileAgain) {
  Write(".aws/credentials", "[default]\naws_access_key_id=OLD\naws_secret_access_key=old-secret\n");
  AwsCredentialChain chain =
      AwsCredentialChain(env_, {.variable = [this](const char* name) { return variables_[name]; }});
  EXPECT_EQ(IdOf(chain.Get()), "OLD");
  Write(".aws/credentials", "[default]\naws_access_key_id=NEW\naws_secret_access_key=new-secret\n");
  EXPECT_EQ(IdOf(chain.Get()), "OLD");
  chain.Forget();
  EXPECT_EQ(IdOf(chain.Get()), "NEW");
}

TEST_F(AwsCredentialChainTest, ContainerProvidesCredentialsWithExpiry) {
  HttpServer server([](const HttpServerRequest&) {
    return Answer(200, CredentialsJson("CONTAINER", "2026-03-01T13:00:00Z"));
  });
  Write("token", "token-in-file\n");
  variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server.Url("/role?x=1");
  variables_["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "token-in-variable";
  const auto found = Get();
  EXPECT_EQ(IdOf(found), "CONTAINER");
  EXPECT_EQ(found->expires, kNoon + 1h);
  EXPECT_EQ(server.requests().back().target, "/role?x=1");
  EXPECT_EQ(server.requests().back().Header("Authorization"), "token-in-variable");
  EXPECT_EQ(Redact("secret-of-CONTAINER token-of-CONTAINER token-in-variable"), "*** *** ***");

  variables_["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = home_ + "/token";
  EXPECT_EQ(IdOf(Get()), "CONTAINER");
  EXPECT_EQ(server.requests().back().Header("Authorization"), "token-in-file");

  container_host_ = server.Url("");
  variables_["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/credentials/7";
  EXPECT_EQ(IdOf(Get()), "CONTAINER");
  EXPECT_EQ(server.requests().back().target, "/v2/credentials/7");
}

TEST_F(AwsCredentialChainTest, ContainerIsUsedWithoutTlsOnlyOnTrustedHosts) {
  for (const char* url : {"http://example.com/", "http://169.254.169.254/", "http://10.0.0.1/",
                          "http://127.example.com/", "ftp://127.0.0.1/", "nonsense"}) {
    variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = url;
    EXPECT_EQ(CodeOf(Get()), Code::kInvalid) << url;
  }
  for (const char* url :
       {"http://127.0.0.1:1/", "http://localhost:1/", "http://[::1]:1/", "https://127.0.0.1:1/"}) {
    variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = url;
    EXPECT_EQ(CodeOf(Get()), Code::kUnavailable) << url;
  }
}

TEST_F(AwsCredentialChainTest, MisbehavingContainerIsUnavailable) {
  const std::vector<std::pair<HttpServerReply, Code>> cases = {
      {Answer(500, ""), Code::kUnavailable},
      {Answer(302, "", {{"Location", "http://127.0.0.1:1/"}}), Code::kUnavailable},
      {Answer(403, ""), Code::kPermission},
      {Answer(200, ""), Code::kUnavailable},
      {Answer(200, "[]"), Code::kUnavailable},
      {Answer(200, R"({"AccessKeyId":"A","SecretAccessKey":7})"), Code::kUnavailable},
      {Answer(200, CredentialsJson("A", "tomorrow")), Code::kUnavailable},
      {Answer(200, std::string(100'000, ' ')), Code::kInvalid},
      {testing::CloseWithoutAnswer(), Code::kUnavailable},
      {testing::CloseMidBody(), Code::kUnavailable},
  };
  for (const auto& [reply, code] : cases) {
    HttpServer server([&reply = reply](const HttpServerRequest&) { return reply; });
    variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server.Url();
    EXPECT_EQ(CodeOf(Get()), code) << reply.bytes.substr(0, 200);
  }
}

// An instance with the role `worker` that requires a token.
class Instance {
 public:
  Instance() : server_([this](const HttpServerRequest& request) { return Reply(request); }) {}

  std::string Url() const { return server_.Url(""); }
  int fetched() const { return fetched_; }
  void Break(bool broken) { broken_ = broken; }
  void ExpireAt(const std::string& time) {
    const std::lock_guard lock(mutex_);
    expires_ = time;
  }

 private:
  HttpServerReply Reply(const HttpServerRequest& request) {
    const std::string path = "/latest/meta-data/iam/security-credentials/";
    if (broken_) return Answer(503, "");
    if (request.method == "PUT" && request.target == "/latest/api/token") {
      return Answer(request.Header("X-aws-ec2-metadata-token-ttl-seconds").empty() ? 400 : 200,
                    "metadata-token");
    }
    if (request.Header("X-aws-ec2-metadata-token") != "metadata-token") return Answer(401, "");
    if (request.target == path) return Answer(200, "worker\n");
    if (request.target != path + "worker") return Answer(404, "");
    const int number = ++fetched_;
    const std::lock_guard lock(mutex_);
    return Answer(200, CredentialsJson("INSTANCE" + std::to_string(number), expires_));
  }

  std::atomic<int> fetched_ = 0;
  std::atomic<bool> broken_ = false;
  std::mutex mutex_;
  std::string expires_ = "2026-03-01T18:00:00.123Z";
  HttpServer server_;
};

TEST_F(AwsCredentialChainTest, InstanceProvidesCredentialsOfItsRole) {
  Instance instance;
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = instance.Url() + "/";
  const auto found = Get();
  EXPECT_EQ(IdOf(found), "INSTANCE1");
  EXPECT_EQ(found->session_token, "token-of-INSTANCE1");
  EXPECT_EQ(found->expires, kNoon + 6h);
  EXPECT_EQ(Redact("metadata-token"), "***");
  variables_["AWS_EC2_METADATA_DISABLED"] = "true";
  EXPECT_EQ(CodeOf(Get()), Code::kInvalid);
}

TEST_F(AwsCredentialChainTest, InstanceWithoutARoleHasNone) {
  HttpServer server([](const HttpServerRequest& request) {
    return request.method == "PUT" ? Answer(200, "metadata-token") : Answer(404, "");
  });
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server.Url("");
  EXPECT_EQ(CodeOf(Get()), Code::kInvalid);
}

TEST_F(AwsCredentialChainTest, InstanceThatDropsTheTokenIsUnavailable) {
  HttpServer server([](const HttpServerRequest&) { return testing::CloseWithoutAnswer(); });
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server.Url("");
  const auto dropped = Get();
  EXPECT_EQ(CodeOf(dropped), Code::kUnavailable);
  EXPECT_NE(dropped.error().hint.find("hop limit"), std::string::npos);
}

TEST_F(AwsCredentialChainTest, CredentialsAreRenewedFiveMinutesBeforeTheyExpire) {
  Instance instance;
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = instance.Url();
  AwsCredentialChain chain = Chain();
  EXPECT_EQ(IdOf(chain.Get()), "INSTANCE1");
  env_.Pass(5h + 54min);
  EXPECT_EQ(IdOf(chain.Get()), "INSTANCE1");
  instance.ExpireAt("2026-03-02T00:00:00Z");
  env_.Pass(1min);
  EXPECT_EQ(IdOf(chain.Get()), "INSTANCE2");
  EXPECT_EQ(IdOf(chain.Get()), "INSTANCE2");
}

TEST_F(AwsCredentialChainTest, OldCredentialsAreUsedWhileRenewalFails) {
  Instance instance;
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = instance.Url();
  AwsCredentialChain chain = Chain();
  EXPECT_EQ(IdOf(chain.Get()), "INSTANCE1");
  instance.Break(true);
  env_.Pass(5h + 56min);
  EXPECT_EQ(IdOf(chain.Get()), "INSTANCE1");
  instance.Break(false);
  EXPECT_EQ(IdOf(chain.Get()), "INSTANCE1");  // not requested again at once
  instance.Break(true);
  env_.Pass(4min);
  EXPECT_EQ(CodeOf(chain.Get()), Code::kUnavailable);
  instance.Break(false);
  EXPECT_EQ(IdOf(chain.Get()), "INSTANCE2");
}

// A machine whose clock is hours ahead still works: AWS goes by its own.
TEST_F(AwsCredentialChainTest, FastClockNeitherFailsNorFloodsTheEndpoint) {
  Instance instance;
  instance.ExpireAt("2026-03-01T11:00:00Z");
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = instance.Url();
  AwsCredentialChain chain = Chain();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(IdOf(chain.Get()), "INSTANCE1");
  env_.Pass(31s);
  EXPECT_EQ(IdOf(chain.Get()), "INSTANCE2");
}

TEST_F(AwsCredentialChainTest, ThreadsFetchOnce) {
  Instance instance;
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = instance.Url();
  AwsCredentialChain chain = Chain();
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const auto found = chain.Get();
        if (found && found->access_key_id == "INSTANCE1") ++right;
      });
    }
  }
  EXPECT_EQ(right, 8);
  EXPECT_EQ(instance.fetched(), 1);
}

}  // namespace
}  // namespace muster::net
