// Goal: no unauthorised access to the server. Method: the built program, requests of all kinds from
// tests/data/serve/requests.jsonl, and misbehaving clients.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "core/json.h"
#include "serve/served.h"
#include "support/temporary_folder.h"

namespace muster::testing {
namespace {

// Shared by all tests without special needs.
Served& Shared() {
  static Served served;
  return served;
}

std::string Fill(std::string text, Served& served, const std::string& cookie) {
  const std::pair<std::string, std::string> values[] = {{"{PORT}", std::to_string(served.port())},
                                                        {"{OPERATOR}", served.operator_token()},
                                                        {"{VIEWER}", served.viewer_token()},
                                                        {"{COOKIE}", cookie}};
  for (const auto& [name, value] : values) {
    for (size_t at = text.find(name); at != text.npos; at = text.find(name)) {
      text.replace(at, name.size(), value);
    }
  }
  return text;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ServeSecurity, EveryRequestOfTheTableGetsItsResponse) {
  Served& served = Shared();
  const std::string cookie = served.cookie();
  std::ifstream table(MUSTER_SERVE_REQUESTS);
  int count = 0;
  for (std::string line; std::getline(table, line); ++count) {
    const Json test = Json::parse(line);
    net::HttpHeaders headers;
    const Json given = test.value("headers", Json::object());
    for (const auto& [name, value] : given.items()) {
      headers.emplace_back(name, Fill(value.get<std::string>(), served, cookie));
    }
    const net::HttpResponse response = served.Send(
        test.value("method", "GET"), Fill(test["path"].get<std::string>(), served, cookie), headers,
        test.value("body", ""));
    SCOPED_TRACE(test["name"].get<std::string>() + ": " + response.body);
    EXPECT_EQ(response.status, test["status"].get<int>());
    if (test.contains("code")) {
      const Json body = Json::parse(response.body, nullptr, false);
      ASSERT_TRUE(body.is_object());
      EXPECT_EQ(body["error"]["code"], test["code"]);
      EXPECT_NE(body["error"]["message"], "");
    }
    if (test.contains("contains")) {
      EXPECT_NE(response.body.find(test["contains"].get<std::string>()), std::string::npos);
    }
    // Every response has the security headers.
    EXPECT_NE(response.Header("Content-Security-Policy").value_or("").find("default-src 'none'"),
              std::string::npos);
    EXPECT_EQ(response.Header("Content-Security-Policy").value_or("").find("unsafe"),
              std::string::npos);
    EXPECT_EQ(response.Header("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(response.Header("X-Frame-Options"), "DENY");
    EXPECT_EQ(response.Header("Referrer-Policy"), "no-referrer");
    EXPECT_FALSE(response.Header("Access-Control-Allow-Origin"));
  }
  EXPECT_GT(count, 50);
}

TEST(ServeSecurity, ListensOnLoopbackOnly) {
  const std::string table = ReadText("/proc/net/tcp");
  char port[8];
  std::snprintf(port, sizeof port, ":%04X", Shared().port());
  EXPECT_NE(table.find("0100007F" + std::string(port) + " 00000000:0000 0A"), std::string::npos);
  EXPECT_EQ(table.find("00000000" + std::string(port) + " 00000000:0000 0A"), std::string::npos);
}

TEST(ServeSecurity, OtherAddressesAreRefusedWithoutTls) {
  try {
    Served served({"--listen", "0.0.0.0"});
    FAIL() << "it started";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("TLS"), std::string::npos) << error.what();
  }
}

TEST(ServeSecurity, WithTlsOtherAddressesAreServedAndTheCookieIsSecure) {
  const TemporaryFolder folder;
  const std::string certificate = folder.At("cert.pem");
  const std::string key = folder.At("key.pem");
  const std::string make =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
      "-subj /CN=127.0.0.1 -days 2 -keyout " +
      key + " -out " + certificate + " 2>/dev/null";
  ASSERT_EQ(std::system(make.c_str()), 0) << "openssl is missing";
  // The server may run as another user.
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(key.c_str(), 0644), 0);
  Served served({"--listen", "0.0.0.0", "--allow-host", "127.0.0.1", "--tls-cert", certificate,
                 "--tls-key", key});
  EXPECT_EQ(served.Get("/api/v1/session").status, 200);
  EXPECT_EQ(served.Send("GET", "/api/v1/session").status, 401);
  const net::HttpResponse login = served.Send("GET", "/login?token=" + served.operator_token());
  EXPECT_NE(login.Header("Set-Cookie").value_or("").find("; Secure"), std::string::npos);
  EXPECT_TRUE(login.Header("Strict-Transport-Security"));
  // No plain-text access.
  RawConnection plain(served.port());
  plain.Send("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_EQ(plain.ReadUntil("200", 15).find("HTTP/1.1 200"), std::string::npos);
}

TEST(ServeSecurity, TokensArePrivateAndTheLinkIsPrintedOnce) {
  Served served;
  struct stat info {};
  ASSERT_EQ(stat((served.folder() + "/tokens").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(served.operator_token().size(), 64U);
  EXPECT_NE(served.operator_token(), served.viewer_token());
  EXPECT_NE(served.operator_token(), Shared().operator_token());
  EXPECT_NE(served.login_link(), "");
  const size_t before = served.process().Log().size();
  served.process().End(SIGTERM);
  served.Start();
  EXPECT_EQ(served.process().Log().substr(before).find("token="), std::string::npos);
  // The tokens outlive the server.
  EXPECT_EQ(served.Get("/api/v1/session").status, 200);
}

TEST(ServeSecurity, TokensReadableByOthersAreNotUsed) {
  Served served;
  served.process().End(SIGTERM);
  ASSERT_EQ(chmod((served.folder() + "/tokens").c_str(), 0644), 0);
  EXPECT_THROW(served.Start(), std::runtime_error);
  EXPECT_NE(served.process().Log().find("it is readable by others"), std::string::npos);
}

TEST(ServeSecurity, LoginLinkSetsAnHttpOnlySameSiteCookie) {
  const net::HttpResponse login = Shared().Send("GET", "/login?token=" + Shared().operator_token());
  EXPECT_EQ(login.status, 303);
  EXPECT_EQ(login.Header("Location"), "/");
  const std::string cookie(login.Header("Set-Cookie").value_or(""));
  EXPECT_NE(cookie.find("; HttpOnly"), std::string::npos) << cookie;
  EXPECT_NE(cookie.find("; SameSite=Strict"), std::string::npos) << cookie;
  EXPECT_EQ(cookie.find(Shared().operator_token()), std::string::npos);
  EXPECT_NE(cookie.find("; Max-Age=43200"), std::string::npos) << cookie;
  EXPECT_EQ(login.Header("Cache-Control"), "no-store");
}

TEST(ServeSecurity, TooLargeBodyIsRefusedBeforeAuthentication) {
  RawConnection client(Shared().port());
  client.Send(
      "POST /api/v1/stores/0/work/r/retry HTTP/1.1\r\nHost: 127.0.0.1\r\n"
      "Content-Length: 1000000000\r\n\r\n");
  const std::string answer = client.ReadUntil("too_large");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer;
}

TEST(ServeSecurity, BodyOfUnknownLengthIsRefused) {
  RawConnection client(Shared().port());
  client.Send(
      "POST /api/v1/stores/0/work/r/retry HTTP/1.1\r\nHost: 127.0.0.1\r\n"
      "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  const std::string answer = client.ReadUntil("length_required");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 411 ")) << answer;
  // The body is not parsed as another request.
  EXPECT_EQ(client.ReadUntil("HTTP/1.1", 5).find("HTTP/1.1"), std::string::npos);
}

TEST(ServeSecurity, EndlessHeadIsDisconnected) {
  RawConnection client(Shared().port());
  client.Send("GET / HTTP/1.1\r\n");
  const std::string line = "X-Filler: " + std::string(1000, 'x') + "\r\n";
  bool sent = true;
  for (int i = 0; i < 1000 && sent; ++i) sent = client.Send(line);
  if (sent) client.ReadUntil("", 20);
  EXPECT_TRUE(!sent || client.closed());
}

TEST(ServeSecurity, SlowClientsDoNotBlockOthers) {
  std::vector<std::unique_ptr<RawConnection>> slow;
  for (int i = 0; i < 60; ++i) {
    slow.push_back(std::make_unique<RawConnection>(Shared().port()));
    slow.back()->Send("GET /healthz HT");
  }
  EXPECT_EQ(Shared().Get("/api/v1/session").status, 200);
  // A whole request may take at most ten seconds, however steadily it arrives.
  RawConnection& dripping = *slow.back();
  bool open = true;
  for (int i = 0; i < 60 && open; ++i) {
    open = dripping.Send("T") && !(dripping.ReadUntil("", 1), dripping.closed());
  }
  EXPECT_FALSE(open);
}

TEST(ServeSecurity, ReadOnlyServerRefusesActions) {
  Served served({"--read-only"});
  const net::HttpResponse answer = served.Post("/api/v1/stores/0/work/r/retry", "{}");
  EXPECT_EQ(answer.status, 403) << answer.body;
  EXPECT_EQ(served.Post("/api/v1/stores/0/work/r/retry", R"({"preview":true})").status, 404);
  // It prints a viewer's link.
  EXPECT_NE(served.login_link().find(served.viewer_token()), std::string::npos);
}

TEST(ServeSecurity, EveryActionAndRefusalIsInTheAuditLogWithItsActor) {
  Served served;
  EXPECT_EQ(served.Post("/api/v1/stores/0/work/none/retry", "{}").status, 404);
  served.Send("POST", "/api/v1/stores/0/work/none/retry",
              {{"Authorization", "Bearer " + served.viewer_token()}}, "");
  served.Send("POST", "/api/v1/stores/0/work/none/retry", {{"Authorization", "Bearer junk"}}, "");
  struct stat info {};
  ASSERT_EQ(stat((served.folder() + "/audit").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  std::vector<std::string> seen;
  std::ifstream log(served.folder() + "/audit");
  for (std::string line; std::getline(log, line);) {
    const Json entry = Json::parse(line);
    EXPECT_EQ(entry["action"], "/api/v1/stores/0/work/none/retry");
    EXPECT_NE(entry["at"], "");
    seen.push_back(entry["actor"].get<std::string>() + " " + entry["outcome"].get<std::string>());
  }
  const std::vector<std::string> expected{"operator@127.0.0.1 asked", "operator@127.0.0.1 failed",
                                          "viewer@127.0.0.1 refused", "unknown@127.0.0.1 refused"};
  EXPECT_EQ(seen, expected);
}

TEST(ServeSecurity, FloodOfRefusalsDoesNotFillTheDisk) {
  Served served;
  const std::string path = "/api/v1/stores/0/work/" + std::string(5'000, 'x') + "/retry";
  for (int i = 0; i < 300; ++i) served.Send("POST", path, {{"Authorization", "Bearer junk"}}, "{}");
  EXPECT_LT(ReadText(served.folder() + "/audit").size(), 20'000u);
  // The next line has the number of dropped ones.
  EXPECT_EQ(served.Post("/api/v1/stores/0/work/none/retry", "{}").status, 404);
  EXPECT_NE(
      ReadText(served.folder() + "/audit").find(R"("outcome":"refused, left out","count":290)"),
      std::string::npos);
}

TEST(ServeSecurity, FullDiskDoesNotBlockOperators) {
  Served served;
  ASSERT_EQ(symlink("/dev/full", (served.folder() + "/audit").c_str()), 0);
  const net::HttpResponse answer = served.Post("/api/v1/stores/0/work/none/retry", "{}");
  EXPECT_EQ(answer.status, 404) << answer.body;
  EXPECT_NE(served.process().Log().find("not in the audit log yet"), std::string::npos);
  ASSERT_EQ(unlink((served.folder() + "/audit").c_str()), 0);
  served.Post("/api/v1/stores/0/work/other/retry", "{}");
  const std::string audit = ReadText(served.folder() + "/audit");
  EXPECT_LT(audit.find("work/none/retry"), audit.find("work/other/retry"));
}

TEST(ServeSecurity, LogoutEndsTheSessionOnTheServer) {
  Served served;
  const std::string cookie = served.cookie();
  const std::string other = served.cookie();
  EXPECT_TRUE(cookie.starts_with("muster_session_" + std::to_string(served.port()) + "="))
      << cookie;
  EXPECT_NE(cookie, other);
  const auto status = [&](const std::string& by) {
    return served.Send("GET", "/api/v1/session", {{"Cookie", by}}).status;
  };
  EXPECT_EQ(status(cookie), 200);
  const std::string host = "127.0.0.1:" + std::to_string(served.port());
  RawConnection viewer(served.port());
  viewer.Send("GET /api/v1/events?topic=%2Fapi%2Fv1%2Foverview HTTP/1.1\r\nHost: " + host +
              "\r\nCookie: " + cookie + "\r\n\r\n");
  EXPECT_NE(viewer.ReadUntil("event: snapshot").find("event: snapshot"), std::string::npos);
  EXPECT_EQ(
      served.Send("POST", "/api/v1/logout", {{"Cookie", cookie}, {"Origin", "http://" + host}})
          .status,
      204);
  EXPECT_EQ(status(cookie), 401);
  EXPECT_EQ(status(other), 200);
  // Its live streams end too.
  viewer.ReadUntil("", 30);
  EXPECT_TRUE(viewer.closed());
  served.process().End(SIGTERM);
  served.Start();
  EXPECT_EQ(status(cookie), 401);
  EXPECT_EQ(status(other), 200);
}

TEST(ServeSecurity, ActionThatCannotBeAuditedIsRefused) {
  Served served;
  ASSERT_EQ(mkdir((served.folder() + "/audit").c_str(), 0700), 0);
  const net::HttpResponse answer = served.Post("/api/v1/stores/0/work/none/retry", "{}");
  EXPECT_EQ(answer.status, 503) << answer.body;
  EXPECT_NE(answer.body.find("audit log"), std::string::npos);
}

TEST(ServeSecurity, ViewerBeyondTheLimitIsRefusedClearly) {
  Served served({"--max-viewers", "2"});
  const std::string request =
      "GET /api/v1/events?topic=%2Fapi%2Fv1%2Foverview HTTP/1.1\r\nHost: 127.0.0.1:" +
      std::to_string(served.port()) + "\r\nAuthorization: Bearer " + served.viewer_token() +
      "\r\n\r\n";
  RawConnection first(served.port());
  RawConnection second(served.port());
  for (RawConnection* viewer : {&first, &second}) {
    viewer->Send(request);
    EXPECT_NE(viewer->ReadUntil("event: snapshot").find("event: snapshot"), std::string::npos);
  }
  RawConnection third(served.port());
  third.Send(request);
  const std::string answer = third.ReadUntil("--max-viewers");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("too_many_viewers"), std::string::npos);
  EXPECT_NE(answer.find("Retry-After: "), std::string::npos);
}

}  // namespace
}  // namespace muster::testing
