#include "pipeline/opensearch/opensearch_sink.h"

#include <gtest/gtest.h>

#include "core/url.h"
#include "support/http_server.h"

namespace muster::pipeline {
namespace {

using testing::Answer;
using testing::HttpServer;
using testing::HttpServerRequest;

// The identity of index `books` in a cluster that does not know it, and answers `pattern` to a
// request for all indices whose names begin so.
Result<std::string> IdentityWhen(int status, const std::string& pattern) {
  HttpServer server([&](const HttpServerRequest& request) {
    if (request.target.starts_with("/books*")) return Answer(status, pattern);
    return Answer(404, R"({"error":{"type":"index_not_found_exception","reason":"none"}})");
  });
  const auto url = ParseUrl("opensearch+" + server.Url() + "books");
  auto sink = OpenOpenSearchSink(*url, RealEnv());
  if (!sink) return sink.error();
  return (*sink)->Identity("books");
}

TEST(OpenSearchSink, AnIndexIsNotGoneWhileItsClusterStarts) {
  const auto identity = IdentityWhen(
      503, R"({"error":{"type":"cluster_block_exception","reason":"state not recovered"}})");
  ASSERT_FALSE(identity);
  EXPECT_EQ(identity.error().code, Code::kUnavailable);
}

TEST(OpenSearchSink, AnIndexThatAppearsInBetweenIsThere) {
  const auto identity = IdentityWhen(200, R"({"books":{"settings":{"index":{"uuid":"u1"}}}})");
  ASSERT_TRUE(identity) << identity.error().ToString();
  EXPECT_EQ(*identity, "u1");
}

TEST(OpenSearchSink, AnIndexThatIsGoneIsNotFound) {
  for (const auto& [status, pattern] : {std::pair{200, "{}"}, std::pair{403, "{}"}}) {
    const auto identity = IdentityWhen(status, pattern);
    ASSERT_FALSE(identity);
    EXPECT_EQ(identity.error().code, Code::kNotFound);
  }
}

// The identity of alias `books`, of which the cluster says `settings` and `aliases`.
std::string IdentityBehind(const std::string& settings, const std::string& aliases) {
  HttpServer server([&](const HttpServerRequest& request) {
    if (request.target.starts_with("/books/_alias/books")) return Answer(200, aliases);
    return Answer(200, settings);
  });
  const auto url = ParseUrl("opensearch+" + server.Url() + "books");
  auto sink = OpenOpenSearchSink(*url, RealEnv());
  return sink ? (*sink)->Identity("books").value() : sink.error().ToString();
}

TEST(OpenSearchSink, TheOnlyIndexBehindAnAliasIsItsIdentity) {
  const std::string one = R"({"books-1":{"settings":{"index":{"uuid":"u1"}}}})";
  const std::string two =
      R"({"books-1":{"settings":{"index":{"uuid":"u1"}}},"books-2":{"settings":{"index":{"uuid":"u2"}}}})";
  EXPECT_EQ(IdentityBehind(one, R"({"books-1":{"aliases":{"books":{}}}})"), "u1");
  // Others may be added, and a data stream has no aliases.
  EXPECT_EQ(IdentityBehind(one, R"({"books-1":{"aliases":{"books":{"is_write_index":true}}}})"),
            "");
  EXPECT_EQ(IdentityBehind(two, R"({"books-1":{"aliases":{"books":{"is_write_index":true}}},
                                    "books-2":{"aliases":{"books":{"is_write_index":false}}}})"),
            "");
  EXPECT_EQ(IdentityBehind(one, "{}"), "");
}

}  // namespace
}  // namespace muster::pipeline
