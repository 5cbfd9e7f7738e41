// `muster doctor` on OpenSearch: healthy stores, and failures in the field. Each of those must end
// with one line of error, one line of hint, and the right exit code.

#include <gtest/gtest.h>

#include <map>

#include "cli/program.h"
#include "core/json.h"
#include "muster/store.h"
#include "support/http_relay.h"
#include "support/http_server.h"
#include "support/opensearch_server.h"
#include "support/shared_server.h"

namespace muster::testing {
namespace {

Outcome Doctor(const std::string& store, const std::map<std::string, std::string>& variables = {}) {
  return RunMuster({"doctor", "--store", store}, ".", variables);
}

std::string UrlOf(int port, const std::string& space = "muster") {
  return "opensearch+http://127.0.0.1:" + std::to_string(port) + "?namespace=" + space;
}

// A cluster that gives every request the same response.
Outcome DoctorOf(int status, const std::string& body) {
  HttpServer server([&](const HttpServerRequest&) { return Answer(status, body); });
  return Doctor(UrlOf(server.port()));
}

TEST(BadOpenSearch, UnreachableServer) { EXPECT_EQ(NotAClearError(Doctor(UrlOf(1)), 5), ""); }

TEST(BadOpenSearch, AWrongPassword) {
  HttpServer server([](const HttpServerRequest&) { return Answer(401, "Unauthorized"); });
  const Outcome outcome =
      Doctor("opensearch+http://me:${env:PW}@127.0.0.1:" + std::to_string(server.port()),
             {{"PW", "wrong-password"}});
  EXPECT_EQ(NotAClearError(outcome, 5), "");
  EXPECT_EQ((outcome.out + outcome.err).find("wrong-password"), std::string::npos) << outcome.err;
}

TEST(BadOpenSearch, AnExpiredToken) {
  HttpServer server([](const HttpServerRequest&) {
    return Answer(403, R"({"message":"The security token included in the request is expired"})");
  });
  const Outcome outcome =
      Doctor(UrlOf(server.port()) + "&aws=eu-central-1",
             {{"AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"}, {"AWS_SECRET_ACCESS_KEY", "a-secret-of-ours"}});
  EXPECT_EQ(NotAClearError(outcome, 5), "");
  EXPECT_NE(outcome.err.find("expired"), std::string::npos) << outcome.err;
}

TEST(BadOpenSearch, TooOldAndOtherServers) {
  EXPECT_EQ(NotAClearError(DoctorOf(200, R"({"version":{"number":"6.8.23"}})"), 1), "");
  EXPECT_EQ(NotAClearError(DoctorOf(200, "<html>Welcome to nginx!</html>"), 2), "");
}

class OpenSearchDoctor : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = OpenSearchServer::Unavailable();
    if (!reason.empty()) GTEST_SKIP() << "OpenSearch is not available: " << reason;
    space_ = UniqueName(RealEnv().NewId().substr(0, 12));
  }

  static OpenSearchServer& Server() { return OpenSearchServer::Shared(); }
  std::string Url() const { return UrlOf(Server().port(), space_); }
  std::string Index() const { return "/" + space_ + "_records-000001"; }

  // Check → "status: message", of a store that can be used.
  static std::map<std::string, std::string> Findings(const std::string& store) {
    const Outcome outcome = RunMuster({"doctor", "--json", "--store", store});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
    std::map<std::string, std::string> findings;
    const auto json = Json::parse(outcome.out, nullptr, false);
    for (const auto& finding : json["findings"]) {
      findings[finding["check"]] =
          finding["status"].get<std::string>() + ": " + finding["message"].get<std::string>();
    }
    return findings;
  }

  std::string space_;
};

TEST_F(OpenSearchDoctor, GoodStorePassesEveryCheckAndIsUnchanged) {
  auto before = Findings(Url());
  EXPECT_NE(before["schema"].find("does not exist yet"), std::string::npos) << before["schema"];
  EXPECT_THROW(Server().Call("GET", Index()), std::runtime_error);

  const auto store = store::OpenStore(Url(), RealEnv());
  ASSERT_TRUE(store) << store.error().ToString();
  auto findings = Findings(Url());
  for (const char* check : {"muster", "connect", "version", "tls", "time", "schema", "settings",
                            "health", "privileges", "clock", "latency", "write"}) {
    EXPECT_TRUE(findings[check].starts_with("ok: ")) << check << " " << findings[check];
  }
  EXPECT_TRUE(findings["replicas"].starts_with("warn: ")) << "the test's server is one node";
  EXPECT_TRUE((*store)->Scan("doctor", "", "", 10).value().empty());
}

TEST_F(OpenSearchDoctor, WarnsAboutCostlySettings) {
  ASSERT_TRUE(store::OpenStore(Url(), RealEnv()));
  Server().Call("PUT", Index() + "/_settings", R"({"index.refresh_interval":"1s"})");
  EXPECT_TRUE(Findings(Url())["settings"].starts_with("warn: refresh_interval"));
  Server().Call("PUT", Index() + "/_settings", R"({"index.translog.durability":"async"})");
  EXPECT_TRUE(Findings(Url())["settings"].starts_with("warn: translog.durability"));
}

TEST_F(OpenSearchDoctor, AReadOnlyIndex) {
  ASSERT_TRUE(store::OpenStore(Url(), RealEnv()));
  Server().Call("PUT", Index() + "/_settings", R"({"index.blocks.read_only_allow_delete":true})");
  EXPECT_EQ(NotAClearError(Doctor(Url()), 5), "");
}

TEST_F(OpenSearchDoctor, ANewerSchemaVersion) {
  const std::string name = space_ + "_records";
  Server().Call("PUT", Index(),
                R"({"mappings":{"_meta":{"muster_schema":99}},"aliases":{")" + name + R"(":{},")" +
                    name + R"(-x":{}}})");
  const Outcome outcome = Doctor(Url());
  EXPECT_EQ(NotAClearError(outcome, 1), "");
  EXPECT_NE(outcome.err.find("99"), std::string::npos) << outcome.err;
}

TEST_F(OpenSearchDoctor, RoleWithoutPermissionToRefresh) {
  ASSERT_TRUE(store::OpenStore(Url(), RealEnv()));
  HttpRelay relay(Server().port(),
                  [](const HttpServerRequest& request) -> std::optional<HttpServerReply> {
                    if (request.target.find("_refresh") == std::string::npos) return std::nullopt;
                    return Answer(403, R"({"error":{"type":"security_exception",
                        "reason":"no permissions for [indices:admin/refresh]"}})");
                  });
  const Outcome outcome = Doctor(UrlOf(relay.port(), space_));
  EXPECT_EQ(NotAClearError(outcome, 5), "");
  EXPECT_NE(outcome.err.find("indices:admin/refresh"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace muster::testing
