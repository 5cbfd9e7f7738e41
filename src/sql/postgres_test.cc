#include "sql/postgres.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stop_token>
#include <thread>

#include "core/interrupt.h"
#include "support/loopback.h"

namespace muster::sql {
namespace {

using std::chrono::milliseconds;

// A port on 127.0.0.1 that accepts connections and never responds.
class SilentPort {
 public:
  ~SilentPort() { Close(); }

  void Close() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }
  // Returns once a connection is pending; it is never accepted.
  bool AwaitConnection() const {
    pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
    return poll(&waiting, 1, 60'000) == 1;
  }
  std::string Url() const {
    return "postgresql://somebody:secret@127.0.0.1:" + std::to_string(port_) + "/db";
  }

 private:
  int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port_ = testing::ListenOnLoopback(socket_);
};

TEST(PgConnection, RefusedConnectionIsUnavailableAndNamesTheServerWithoutThePassword) {
  SilentPort port;
  port.Close();
  auto connection = PgConnection::Open({.uri = port.Url()});
  ASSERT_FALSE(connection);
  const std::string text = connection.error().ToString();
  EXPECT_EQ(connection.error().code, Code::kUnavailable) << text;
  EXPECT_NE(text.find("127.0.0.1"), std::string::npos) << text;
  EXPECT_NE(text.find("/db"), std::string::npos) << text;
  EXPECT_EQ(text.find("secret"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_FALSE(connection.error().hint.empty());
}

TEST(PgConnection, UnresponsiveServerIsUnavailableWithinTheTimeout) {
  SilentPort port;
  const auto start = std::chrono::steady_clock::now();
  auto connection = PgConnection::Open({.uri = port.Url(), .connect_timeout = milliseconds(100)});
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, Code::kUnavailable) << connection.error().ToString();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(PgConnection, InterruptEndsTheWaitForAnUnresponsiveServer) {
  SilentPort port;
  std::stop_source stop;
  std::jthread stopper([&] {
    EXPECT_TRUE(port.AwaitConnection());
    stop.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  const InterruptScope scope(stop.get_token());
  auto connection =
      PgConnection::Open({.uri = port.Url(), .connect_timeout = milliseconds(60'000)});
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, Code::kCancelled) << connection.error().ToString();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(PgConnection, InvalidUriIsNotQuoted) {
  for (const char* uri :
       {"postgresql://user:se%zzcret@host/db", "postgresql://user:secret@host/db?no=1",
        "postgresql://user:secret@[host/db", "nonsense secret"}) {
    auto connection = PgConnection::Open({.uri = uri});
    ASSERT_FALSE(connection) << uri;
    EXPECT_EQ(connection.error().code, Code::kInvalid) << uri;
    EXPECT_EQ(connection.error().ToString().find("cret"), std::string::npos) << uri;
  }
}

TEST(PgCodeOf, MapsSqlstatesToCodes) {
  EXPECT_EQ(PgCodeOf("28P01"), Code::kPermission);
  EXPECT_EQ(PgCodeOf("42501"), Code::kPermission);
  EXPECT_EQ(PgCodeOf("40001"), Code::kUnavailable);
  EXPECT_EQ(PgCodeOf("40P01"), Code::kUnavailable);
  EXPECT_EQ(PgCodeOf("55P03"), Code::kUnavailable);
  EXPECT_EQ(PgCodeOf("57014"), Code::kUnavailable);
  EXPECT_EQ(PgCodeOf("57P03"), Code::kUnavailable);
  EXPECT_EQ(PgCodeOf("53300"), Code::kUnavailable);
  for (const char* ours : {"53200", "53400", "57P01", "58000", "58030", "58P01"}) {
    EXPECT_EQ(PgCodeOf(ours), Code::kUnavailable) << ours;
  }
  EXPECT_EQ(PgCodeOf("40003"), Code::kUnknownOutcome);
  EXPECT_EQ(PgCodeOf("08007"), Code::kUnknownOutcome);
  EXPECT_EQ(PgCodeOf("25006"), Code::kReadOnly);
  EXPECT_EQ(PgCodeOf("53100"), Code::kFull);
  EXPECT_EQ(PgCodeOf("XX001"), Code::kCorrupt);
  EXPECT_EQ(PgCodeOf("XX002"), Code::kCorrupt);
  EXPECT_EQ(PgCodeOf("22P02"), Code::kInvalid);
  EXPECT_EQ(PgCodeOf("3D000"), Code::kNotFound);
  EXPECT_EQ(PgCodeOf("XX000"), Code::kInternal);
  EXPECT_EQ(PgCodeOf(""), Code::kInternal);
}

TEST(PgIdentifier, QuotesAnyText) {
  EXPECT_EQ(PgIdentifier("select"), "\"select\"");
  EXPECT_EQ(PgIdentifier("a\"b"), "\"a\"\"b\"");
}

TEST(PgLiteral, QuotesAnyText) {
  EXPECT_EQ(PgLiteral("it's"), "'it''s'");
  EXPECT_EQ(PgLiteral("a\\'b"), "E'a\\\\''b'");
}

TEST(PgArray, UsesTheServersBinaryFormat) {
  PgArray array(PgArray::Element::kText, 2);
  array.Text("ab");
  array.Null();
  const std::string expected("\0\0\0\1\0\0\0\1\0\0\0\x19\0\0\0\2\0\0\0\1\0\0\0\2ab\xff\xff\xff\xff",
                             30);
  EXPECT_EQ(array.bytes(), expected);
}

}  // namespace
}  // namespace muster::sql
