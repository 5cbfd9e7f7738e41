#include "pipeline/opensearch/opensearch_sink.h"

#include <gtest/gtest.h>

#include "core/url.h"
#include "net/opensearch.h"
#include "pipeline/opensearch/opensearch_source.h"
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

TEST(OpenSearchSink, DocumentsAreCountedAfterARefresh) {
  std::vector<std::string> requests;
  int status = 200;
  HttpServer server([&](const HttpServerRequest& request) {
    requests.push_back(request.method + " " + request.target);
    return Answer(status, R"({"count":7,"_shards":{"total":1}})");
  });
  const auto sink =
      OpenOpenSearchSink(*ParseUrl("opensearch+" + server.Url() + "all"), RealEnv()).value();
  EXPECT_EQ(sink->CountDocuments("books").value(), 7);
  EXPECT_EQ(requests, (std::vector<std::string>{"POST /all/_refresh", "GET /all/_count"}));
  // Some users may only write.
  status = 403;
  EXPECT_EQ(sink->CountDocuments("books").value(), std::nullopt);
}

TEST(OpenSearchSink, AClusterThatIsStillFormingHasNoIdentityYet) {
  std::string uuid = "_na_";
  HttpServer server([&](const HttpServerRequest& request) {
    if (request.target == "/") return Answer(200, R"({"cluster_uuid":")" + uuid + R"("})");
    return Answer(200, R"({"books":{"settings":{"index":{"uuid":"u1"}}}})");
  });
  const auto sink = OpenOpenSearchSink(*ParseUrl("opensearch+" + server.Url()), RealEnv()).value();
  EXPECT_EQ(sink->TableId("books").error().code, Code::kUnavailable);
  uuid = "c1";
  EXPECT_EQ(sink->TableId("books").value(), "c1/u1");
}

// What a sink makes of `books`, of which the cluster says `answer`.
struct Target {
  Result<std::vector<TargetChange>> prepared;
  Result<std::string> table;
};
Target TargetWhen(int status, const std::string& answer) {
  HttpServer server([&](const HttpServerRequest& request) {
    EXPECT_EQ(request.method, "GET") << request.target << ": nothing may be changed";
    if (request.target == "/") return Answer(200, R"({"cluster_uuid":"c1"})");
    return Answer(status, answer);
  });
  const auto sink = OpenOpenSearchSink(*ParseUrl("opensearch+" + server.Url()), RealEnv()).value();
  return {sink->Prepare({"books", "{}"}, true), sink->TableId("books")};
}

std::string RefusalWhen(const std::string& answer) {
  const Target target = TargetWhen(200, answer);
  if (target.prepared) return "";
  EXPECT_EQ(target.prepared.error().code, Code::kInvalid);
  EXPECT_FALSE(target.prepared.error().hint.empty());
  return target.prepared.error().ToString();
}

// An index as GET /NAME shows it.
std::string Index(const std::string& name, const std::string& aliases = "{}",
                  const std::string& more = "") {
  return '"' + name + R"(":{"aliases":)" + aliases + R"(,"settings":{"index":{"uuid":"u-)" + name +
         "\"" + more + "}}}";
}

TEST(OpenSearchSink, WritesToAnIndexOrTheOneThatItsAliasNames) {
  const std::string writes = R"({"books":{"is_write_index":true}})";
  const std::string other = R"({"books":{"is_write_index":false}})";
  const std::string plain = R"({"books":{}})";
  for (const auto& [answer, id] :
       {std::pair{Index("books"), "c1/u-books"}, std::pair{Index("a", plain), "c1/u-a"},
        std::pair{Index("a", writes), "c1/u-a"},
        std::pair{Index("a", other) + "," + Index("b", writes), "c1/u-b"},
        std::pair{Index("a", plain) + "," + Index("b", writes), "c1/u-b"}}) {
    const Target target = TargetWhen(200, "{" + answer + "}");
    ASSERT_TRUE(target.prepared) << target.prepared.error().ToString();
    EXPECT_TRUE(target.prepared->empty());
    EXPECT_EQ(target.table.value(), id);
  }
  const Target none = TargetWhen(404, R"({"error":{"type":"index_not_found_exception"}})");
  ASSERT_TRUE(none.prepared) << none.prepared.error().ToString();
  EXPECT_EQ(none.prepared->size(), 1U);
  EXPECT_EQ(none.table.value(), "");
}

TEST(OpenSearchSink, RefusesTargetsThatCannotBeWrittenTo) {
  const auto says = [](const std::string& answer, const std::string& words) {
    const std::string refusal = RefusalWhen("{" + answer + "}");
    EXPECT_NE(refusal.find(words), std::string::npos) << refusal;
  };
  const std::string plain = R"({"books":{}})";
  const std::string closed = R"(,"verified_before_close":"true")";
  says(Index("books", "{}", closed), "open it first");
  says(Index("a", R"({"books":{"is_write_index":true}})", closed), "'a', which alias 'books'");
  says(Index("a", plain) + "," + Index("b", plain), "no write index: it stands for a, b");
  says(Index("a", R"({"books":{"is_write_index":false}})"), "no write index");
  says(R"("books":{"aliases":{},"data_stream":"logs"})", "part of data stream 'logs'");
  says(R"("books":{"mappings":{"_meta":{")" + std::string(net::kOpenSearchStoreMark) + R"(":1}}})",
       "Muster store");
  const auto backing = [](const std::string& name, const std::string& closed_too) {
    return Index(name, "{}", closed_too).replace(name.size() + 3, 1, R"({"data_stream":"books",)");
  };
  EXPECT_EQ(RefusalWhen("{" + backing(".ds-1", "") + "," + backing(".ds-2", "") + "}"), "");
  says(backing(".ds-1", "") + "," + backing(".ds-2", closed),
       "'.ds-2' of data stream 'books' is closed");
}

TEST(OpenSearchSink, WarnsOfAnIndexThatChangesDocumentsOfASourcesIndex) {
  HttpServer server([&](const HttpServerRequest& request) {
    if (request.target == "/") return Answer(200, R"({"cluster_uuid":"c1"})");
    return Answer(200, R"({"books":{"mappings":{"_source":{"excludes":["secret"]}},)"
                       R"("settings":{"index":{"uuid":"u1"}}}})");
  });
  const auto sink = OpenOpenSearchSink(*ParseUrl("opensearch+" + server.Url()), RealEnv()).value();
  const auto warning = [&](const std::string& metadata) {
    ::testing::internal::CaptureStderr();
    const auto prepared = sink->Prepare({"books", metadata}, false);
    EXPECT_TRUE(prepared) << prepared.error().ToString();
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string logged = warning(R"({"mappings":{}})");
  EXPECT_NE(logged.find("may lose fields"), std::string::npos) << logged;
  EXPECT_NE(logged.find("_source.excludes"), std::string::npos) << logged;
  EXPECT_EQ(warning(R"({"mappings":{"_source":{"excludes":["secret"]}}})"), "");
  EXPECT_EQ(warning("{}"), "") << "documents that were in no index before";
}

TEST(OpenSearchSink, AnIndexHasTheSameIdAsSourceAndTarget) {
  HttpServer server([&](const HttpServerRequest& request) {
    if (request.target == "/") return Answer(200, R"({"cluster_uuid":"c1"})");
    return Answer(200, "{" + Index("a", R"({"books":{}})") + "}");
  });
  const std::string port = std::to_string(server.port());
  const auto source =
      OpenOpenSearchSource(*ParseUrl("opensearch+http://127.0.0.1:" + port + "/books"), RealEnv())
          .value();
  const auto sink =
      OpenOpenSearchSink(*ParseUrl("opensearch+http://localhost:" + port), RealEnv()).value();
  EXPECT_EQ(source->Collections().value().at(0).name, "a");
  EXPECT_EQ(source->TableId("a").value(), "c1/u-a");
  EXPECT_EQ(sink->TableId("books").value(), "c1/u-a");
}

}  // namespace
}  // namespace muster::pipeline
