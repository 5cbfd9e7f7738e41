#include "serve/http_head.h"

#include <gtest/gtest.h>

namespace muster::serve {
namespace {

constexpr char kHead[] = "POST /a%2Fb?x=1+2&y=%41%zz&z HTTP/1.1\r\nHost: h\r\nX-Two:  a b \r\n\r\n";

TEST(HttpHeadTest, HeadIsParsedInPiecesOfAnySize) {
  const std::string head = kHead;
  for (size_t piece = 1; piece <= head.size(); ++piece) {
    HeadParser parser;
    for (size_t at = 0; at < head.size(); at += piece) {
      const std::string_view bytes = std::string_view(head).substr(at, piece);
      ASSERT_EQ(parser.Feed(bytes), bytes.size());
      ASSERT_EQ(parser.done(), at + piece >= head.size());
    }
    ASSERT_FALSE(parser.refusal());
    const WebRequest& request = parser.request();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/a%2Fb");
    EXPECT_EQ(request.Param("x"), "1 2");
    EXPECT_EQ(request.Param("y"), "A%zz");
    EXPECT_EQ(request.Param("z"), "");
    EXPECT_EQ(request.Header("host"), "h");
    EXPECT_EQ(request.Header("X-Two"), "a b");
    EXPECT_TRUE(parser.keep_alive());
    EXPECT_TRUE(parser.chunks());
  }
}

TEST(HttpHeadTest, BytesAfterTheHeadAreNotConsumed) {
  const std::string head = "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n";
  HeadParser parser;
  EXPECT_EQ(parser.Feed(head + "hello" + kHead), head.size());
  EXPECT_TRUE(parser.done());
}

TEST(HttpHeadTest, KeepAliveFollowsTheClient) {
  const auto kept = [](const std::string& head) {
    HeadParser parser;
    parser.Feed(head + "\r\n");
    EXPECT_TRUE(parser.done()) << head;
    return parser.keep_alive();
  };
  EXPECT_TRUE(kept("GET / HTTP/1.1\r\n"));
  EXPECT_FALSE(kept("GET / HTTP/1.1\r\nConnection: close\r\n"));
  EXPECT_FALSE(kept("GET / HTTP/1.0\r\n"));
  EXPECT_TRUE(kept("GET / HTTP/1.0\r\nConnection: keep-alive\r\n"));
}

TEST(HttpHeadTest, InvalidRequestsAreRefused) {
  const std::pair<const char*, int> cases[] = {
      {"hello\r\n\r\n", 400},
      {"GET / HTTP/x\r\n\r\n", 400},
      {"BREW / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nA\x01: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nA: b\x01\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nContent-Length : 5\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", 411},
      {"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 411}};
  for (const auto& [head, status] : cases) {
    HeadParser parser;
    parser.Feed(head);
    ASSERT_TRUE(parser.refusal()) << head;
    EXPECT_EQ(parser.refusal()->status, status) << head;
  }
}

}  // namespace
}  // namespace muster::serve
