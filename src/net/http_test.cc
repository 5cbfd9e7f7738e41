#include "net/http.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "core/interrupt.h"
#include "core/secrets.h"
#include "net/sigv4.h"
#include "support/fault_proxy.h"
#include "support/http_server.h"
#include "support/temporary_folder.h"

namespace muster::net {
namespace {

using namespace std::chrono_literals;
using testing::Answer;
using testing::HttpServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;

// Tests must not use this machine's proxy.
const HttpOptions kDirect{.use_proxy = false};

Code CodeOf(const Result<HttpResponse>& result) {
  EXPECT_FALSE(result);
  return result ? Code::kInternal : result.error().code;
}

HttpServerReply Hello(const HttpServerRequest&) { return Answer(200, "hello"); }

// "hello hello ... " 100 times, gzipped.
std::string Gzipped() {
  static constexpr unsigned char kBytes[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00,
                                             0x02, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57,
                                             0xc8, 0x18, 0x25, 0x47, 0x49, 0xaa, 0x92, 0x00,
                                             0xf3, 0x31, 0xa2, 0x0d, 0x58, 0x02, 0x00, 0x00};
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}

TEST(Http, SendsTheRequestAndReturnsTheResponse) {
  HttpServer server([](const HttpServerRequest&) {
    return Answer(418, "short and stout", {{"X-Pot", "tea"}, {"Set-Cookie", "a"}});
  });
  HttpClient client(kDirect);
  const auto response = client.Send({.method = "PATCH",
                                     .url = server.Url("/a/../b%2fc//?z=1&a=%20"),
                                     .headers = {{"X-One", "1"}, {"X-Empty", ""}},
                                     .body = std::string("a\0b", 3)});
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(response->status, 418);
  EXPECT_EQ(response->body, "short and stout");
  EXPECT_EQ(response->Header("x-pot"), "tea");
  EXPECT_EQ(response->Header("absent"), std::nullopt);
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].method, "PATCH");
  EXPECT_EQ(requests[0].target, "/a/../b%2fc//?z=1&a=%20");
  EXPECT_EQ(requests[0].body, std::string("a\0b", 3));
  EXPECT_EQ(requests[0].Header("X-One"), "1");
  EXPECT_EQ(requests[0].Header("Host"), "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(requests[0].Header("Content-Type"), "");
  EXPECT_EQ(requests[0].Header("Expect"), "");
}

TEST(Http, EveryMethodArrivesWithItsBody) {
  HttpServer server(Hello);
  HttpClient client(kDirect);
  for (const std::string method : {"GET", "POST", "PUT", "DELETE"}) {
    for (const std::string body : {"", "{}"}) {
      const auto response = client.Send({.method = method, .url = server.Url(), .body = body});
      ASSERT_TRUE(response) << method << ": " << response.error().ToString();
      EXPECT_EQ(response->body, "hello");
      EXPECT_EQ(server.requests().back().method, method);
      EXPECT_EQ(server.requests().back().body, body);
    }
  }
}

TEST(Http, HeadHasHeadersAndNoBody) {
  HttpServer server([](const HttpServerRequest&) {
    return HttpServerReply{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"};
  });
  const auto response = HttpClient(kDirect).Send({.method = "HEAD", .url = server.Url()});
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(response->Header("content-length"), "5");
  EXPECT_EQ(response->body, "");
}

TEST(Http, SignedHostIsTheHostSent) {
  HttpServer server(Hello);
  HttpRequest request{.url = "http://LocalHost:" + std::to_string(server.port()) + "/"};
  const auto texts = SignRequest(request, {"AKIDEXAMPLE", "example-secret"}, {"r", "es"}, {});
  ASSERT_TRUE(texts) << texts.error().ToString();
  const auto response = HttpClient(kDirect).Send(request);
  ASSERT_TRUE(response) << response.error().ToString();
  const std::string sent = server.requests().at(0).Header("Host");
  EXPECT_NE(texts->canonical_request.find("\nhost:" + sent + "\n"), std::string::npos) << sent;
  EXPECT_EQ(server.requests().at(0).Header("Authorization"), texts->authorization);
}

TEST(Http, ConnectionsAreReused) {
  HttpServer server(Hello);
  HttpClient client(kDirect);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(client.Send({.url = server.Url()}));
  for (const auto& request : server.requests()) EXPECT_EQ(request.connection, 1);
}

TEST(Http, ThreadsShareAClient) {
  HttpServer server([](const HttpServerRequest& request) { return Answer(200, request.target); });
  HttpClient client(kDirect);
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const std::string target = "/" + std::to_string(t) + "/" + std::to_string(i);
          const auto response = client.Send({.url = server.Url(target)});
          if (response && response->body == target) ++right;
        }
      });
    }
  }
  EXPECT_EQ(right, 400);
  for (const auto& request : server.requests()) EXPECT_LE(request.connection, 8);
}

TEST(Http, RedirectsAreNotFollowed) {
  HttpServer server([](const HttpServerRequest& request) {
    return Answer(307, "", {{"Location", "http://" + request.Header("Host") + "/elsewhere"}});
  });
  const auto response = HttpClient(kDirect).Send({.url = server.Url()});
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(response->status, 307);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(Http, GzipIsDecoded) {
  HttpServer server([](const HttpServerRequest& request) {
    EXPECT_EQ(request.Header("Accept-Encoding"), "gzip");
    return Answer(200, Gzipped(), {{"Content-Encoding", "gzip"}});
  });
  const auto response = HttpClient(kDirect).Send({.url = server.Url()});
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(response->body.size(), 600u);
  EXPECT_TRUE(response->body.starts_with("hello hello "));
}

TEST(Http, DecompressedBodyIsBounded) {
  HttpServer server([](const HttpServerRequest& request) {
    if (request.target == "/packed") {
      return Answer(201, Gzipped(), {{"Content-Encoding", "gzip"}});
    }
    return Answer(201, std::string(600, 'x'));
  });
  for (const char* target : {"/packed", "/plain"}) {
    HttpRequest request{.method = "POST", .url = server.Url(target), .max_response_bytes = 500};
    const auto response = HttpClient(kDirect).Send(request);
    EXPECT_EQ(CodeOf(response), Code::kInvalid);
    EXPECT_NE(response.error().message.find("status 201"), std::string::npos)
        << response.error().message;
    request.max_response_bytes = 1'000;
    EXPECT_TRUE(HttpClient(kDirect).Send(request));
  }
}

TEST(Http, HeadersAreBounded) {
  HttpServer server([](const HttpServerRequest&) {
    return Answer(200, "", {{"X", std::string(600, 'x')}});
  });
  EXPECT_EQ(CodeOf(HttpClient(kDirect).Send({.url = server.Url(), .max_response_bytes = 500})),
            Code::kInvalid);
}

// What a missing response means depends on whether the request may have changed something.
class HttpLoss : public ::testing::TestWithParam<HttpServerReply> {};

TEST_P(HttpLoss, OutcomeIsUnknownOnlyForWrites) {
  HttpServer server([](const HttpServerRequest&) { return GetParam(); });
  HttpClient client(kDirect);
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH"}) {
    const auto response = client.Send({.method = method, .url = server.Url(), .timeout = 300ms});
    EXPECT_EQ(CodeOf(response), Code::kUnknownOutcome) << response.error().ToString();
  }
  EXPECT_EQ(CodeOf(client.Send({.url = server.Url(), .timeout = 300ms})), Code::kUnavailable);
  EXPECT_EQ(CodeOf(client.Send(
                {.method = "POST", .url = server.Url(), .timeout = 300ms, .writes = false})),
            Code::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, HttpLoss,
    ::testing::Values(
        HttpServerReply{"HTTP/1.1 100 Continue\r\n\r\n", HttpServerReply::Then::kClose},
        testing::CloseWithoutAnswer(), testing::CloseMidBody(), testing::NeverAnswer(),
        HttpServerReply{"hello, this is no HTTP\r\n"},
        HttpServerReply{"HTTP/1.1 200 OK\r\nContent-", HttpServerReply::Then::kClose},
        HttpServerReply{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
                        HttpServerReply::Then::kClose},
        HttpServerReply{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
                        HttpServerReply::Then::kHang},
        Answer(200, "not gzip", {{"Content-Encoding", "gzip"}}),
        Answer(200, Gzipped().substr(0, 20), {{"Content-Encoding", "gzip"}}),
        Answer(200, Gzipped().substr(0, 15) + "garbage!", {{"Content-Encoding", "gzip"}})));

// libcurl on its own would resend such a request.
TEST(Http, WriteIsNotResentWhenAReusedConnectionIsLost) {
  HttpServer server([](const HttpServerRequest& request) {
    return request.target == "/lose" ? testing::CloseWithoutAnswer() : Answer(200, "");
  });
  HttpClient client(kDirect);
  ASSERT_TRUE(client.Send({.url = server.Url("/keep")}));
  const auto lost = client.Send({.method = "POST", .url = server.Url("/lose"), .body = "{}"});
  EXPECT_EQ(CodeOf(lost), Code::kUnknownOutcome);
  ASSERT_EQ(server.requests().size(), 2u);
  EXPECT_EQ(server.requests()[1].connection, 1);
  EXPECT_TRUE(client.Send({.method = "POST", .url = server.Url("/keep")}));
}

TEST(Http, ReadIsResentWhenAReusedConnectionIsLost) {
  HttpServer server([](const HttpServerRequest& request) {
    return request.target == "/lose" && request.connection == 1 ? testing::CloseWithoutAnswer()
                                                                : Answer(200, "");
  });
  HttpClient client(kDirect);
  ASSERT_TRUE(client.Send({.url = server.Url("/keep")}));
  EXPECT_TRUE(client.Send({.url = server.Url("/lose")}));
}

TEST(Http, ConnectionClosedByTheServerIsReplaced) {
  HttpServer server(Hello);
  testing::FaultProxy proxy(server.port());
  const std::string url = "http://127.0.0.1:" + std::to_string(proxy.port()) + "/";
  HttpClient client(kDirect);
  ASSERT_TRUE(client.Send({.method = "POST", .url = url}));
  proxy.CutReplyAfter(0);
  EXPECT_EQ(CodeOf(client.Send({.method = "POST", .url = url})), Code::kUnknownOutcome);
  EXPECT_TRUE(client.Send({.method = "POST", .url = url}));
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(Http, RefusedConnectionIsUnavailable) {
  int port = 0;
  { port = HttpServer(Hello).port(); }
  for (const std::string& url : {"http://127.0.0.1:" + std::to_string(port) + "/",
                                 std::string("http://no-such-host.invalid/")}) {
    const auto response = HttpClient(kDirect).Send({.method = "POST", .url = url});
    EXPECT_EQ(CodeOf(response), Code::kUnavailable) << response.error().ToString();
    EXPECT_NE(response.error().message.find("POST " + url), std::string::npos);
  }
}

TEST(Http, ServerWithoutTlsReceivesNothing) {
  HttpServer server(Hello);
  const std::string url = "https://127.0.0.1:" + std::to_string(server.port()) + "/";
  EXPECT_EQ(CodeOf(HttpClient(kDirect).Send(
                {.method = "POST", .url = url, .connect_timeout = 500ms, .timeout = 500ms})),
            Code::kUnavailable);
  EXPECT_TRUE(server.requests().empty());
}

class HttpTls : public ::testing::Test {
 protected:
  HttpTls() : server_(Hello, &identity_) { ca_file_ = folder_.Write("ca.pem", identity_.pem()); }

  Result<HttpResponse> Post(HttpOptions options, const std::string& url) {
    options.use_proxy = false;
    return HttpClient(options).Send({.method = "POST", .url = url});
  }

  testing::TlsIdentity identity_;
  HttpServer server_;
  testing::TemporaryFolder folder_;
  std::string ca_file_;
};

TEST_F(HttpTls, UnknownCaIsRejectedBeforeAnythingIsSent) {
  const auto response = Post({}, server_.Url());
  EXPECT_EQ(CodeOf(response), Code::kPermission);
  EXPECT_NE(response.error().hint.find("ca_file"), std::string::npos) << response.error().hint;
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(HttpTls, ConfiguredCaIsTrusted) {
  const auto response = Post({.ca_file = ca_file_}, server_.Url());
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(response->body, "hello");
}

TEST_F(HttpTls, CertificateForAnotherHostIsRefused) {
  const testing::TlsIdentity elsewhere("DNS:elsewhere.example");
  HttpServer server(Hello, &elsewhere);
  std::ofstream(ca_file_) << elsewhere.pem();
  EXPECT_EQ(CodeOf(Post({.ca_file = ca_file_}, server.Url())), Code::kPermission);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(HttpTls, HangUpDuringTheRequestDoesNotEndTheProcess) {
  // More than the socket buffers hold, so that there is still something to write.
  HttpRequest request{.method = "PUT", .url = server_.Url(), .body = std::string(32 << 20, 'x')};
  testing::FaultProxy proxy(server_.port());
  request.url = "https://127.0.0.1:" + std::to_string(proxy.port()) + "/";
  proxy.CutRequestAfter(1 << 20);
  HttpClient client({.ca_file = ca_file_, .use_proxy = false});
  EXPECT_EQ(CodeOf(client.Send(request)), Code::kUnknownOutcome);
  EXPECT_EQ(proxy.cuts(), 1);
}

TEST_F(HttpTls, VerificationCanBeTurnedOff) {
  EXPECT_TRUE(Post({.verify_tls = false}, server_.Url()));
}

TEST_F(HttpTls, MissingCaFileIsInvalid) {
  EXPECT_EQ(CodeOf(Post({.ca_file = ca_file_ + ".not"}, server_.Url())), Code::kInvalid);
}

TEST_F(HttpTls, ServerThatAsksForACertificateGetsTheClients) {
  const testing::TlsIdentity client;
  testing::TlsIdentity strict;
  strict.RequireClient(client);
  HttpServer server(Hello, &strict);
  const testing::TemporaryFolder folder;
  const std::string cert = folder.At("client.pem");
  const std::string key = folder.At("client.key");
  std::ofstream(ca_file_) << strict.pem();
  std::ofstream(cert) << client.pem();
  std::ofstream(key) << client.key_pem();
  EXPECT_TRUE(Post({.ca_file = ca_file_, .cert_file = cert, .key_file = key}, server.Url()));
  EXPECT_FALSE(Post({.ca_file = ca_file_}, server.Url()));
  EXPECT_EQ(server.requests().size(), 1);
  // One that cannot be read, and a key of another certificate.
  EXPECT_EQ(CodeOf(Post({.ca_file = ca_file_, .cert_file = cert + ".not", .key_file = key},
                        server.Url())),
            Code::kInvalid);
  std::ofstream(key) << identity_.key_pem();
  EXPECT_EQ(CodeOf(Post({.ca_file = ca_file_, .cert_file = cert, .key_file = key}, server.Url())),
            Code::kInvalid);
}

TEST(Http, NoTimeLeftIsNotForever) {
  HttpServer server([](const HttpServerRequest&) { return testing::NeverAnswer(); });
  for (const auto timeout : {0ms, -5ms}) {
    EXPECT_EQ(CodeOf(HttpClient(kDirect).Send({.url = server.Url(), .timeout = timeout})),
              Code::kUnavailable);
  }
}

// A server that never answers, and a stop that is requested once a request has arrived.
class StalledServer {
 public:
  std::string Url() const { return server_.Url(); }
  std::stop_token stop_token() const { return stop_.get_token(); }

 private:
  std::promise<void> arrived_;
  std::stop_source stop_;
  HttpServer server_{[this](const HttpServerRequest&) {
    arrived_.set_value();
    return testing::NeverAnswer();
  }};
  std::jthread stopper_{[this] {
    arrived_.get_future().wait();
    stop_.request_stop();
  }};
};

TEST(Http, StopEndsARequest) {
  StalledServer server;
  const auto begin = std::chrono::steady_clock::now();
  const auto response =
      HttpClient(kDirect).Send({.method = "POST", .url = server.Url()}, server.stop_token());
  EXPECT_EQ(CodeOf(response), Code::kCancelled);
  EXPECT_NE(response.error().hint, "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

// However deep in the call stack.
TEST(Http, InterruptEndsARequestWithoutStopToken) {
  StalledServer server;
  const auto begin = std::chrono::steady_clock::now();
  {
    const InterruptScope scope(server.stop_token());
    const auto response = HttpClient(kDirect).Send({.method = "POST", .url = server.Url()});
    EXPECT_EQ(CodeOf(response), Code::kCancelled);
    EXPECT_EQ(CodeOf(HttpClient(kDirect).Send({.url = server.Url()})), Code::kCancelled);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  EXPECT_FALSE(Interrupted());
}

TEST(Http, RequestedStopSendsNothing) {
  HttpServer server(Hello);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(CodeOf(HttpClient(kDirect).Send({.url = server.Url()}, stop.get_token())),
            Code::kCancelled);
  EXPECT_TRUE(server.requests().empty());
}

TEST(Http, InvalidRequestsAreNotSent) {
  HttpServer server(Hello);
  const std::vector<HttpRequest> requests = {
      {.url = "ftp://127.0.0.1/"},
      {.url = "127.0.0.1"},
      {.url = "http://"},
      {.url = "http://user:password@127.0.0.1/"},
      {.url = server.Url("/a b")},
      {.url = server.Url("/\xc3\xbc")},
      {.url = server.Url("/\r\nX: y")},
      {.method = "GET /", .url = server.Url()},
      {.method = "", .url = server.Url()},
      {.url = server.Url(), .headers = {{"A", "b\r\nC: d"}}},
      {.url = server.Url(), .headers = {{"A: b\r\nC", "d"}}},
      {.url = server.Url(), .headers = {{"", "d"}}},
  };
  for (const HttpRequest& request : requests) {
    EXPECT_EQ(CodeOf(HttpClient(kDirect).Send(request)), Code::kInvalid) << request.url;
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST(Http, ErrorsDoNotShowSecrets) {
  RememberSecret("open-sesame");
  const auto response =
      HttpClient(kDirect).Send({.url = "http://127.0.0.1:1/open-sesame?X-Amz-Signature=1234"});
  EXPECT_EQ(CodeOf(response), Code::kUnavailable);
  EXPECT_EQ(response.error().ToString().find("sesame"), std::string::npos);
  EXPECT_EQ(response.error().ToString().find("1234"), std::string::npos);
}

TEST(Http, BasicAuthorizationIsEncodedAndRedacted) {
  EXPECT_EQ(BasicAuthorization("Aladdin", "open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  EXPECT_EQ(Redact("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==").find("QWxh"), std::string::npos);
}

TEST(Http, DateHeaderIsRead) {
  using namespace std::chrono;
  EXPECT_EQ(ParseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT"),
            WallTime(sys_days(1994y / 11 / 6) + 8h + 49min + 37s));
  EXPECT_EQ(ParseHttpDate("yesterday"), std::nullopt);
  EXPECT_EQ(ParseHttpDate(""), std::nullopt);
}

}  // namespace
}  // namespace muster::net
