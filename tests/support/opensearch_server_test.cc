#include "support/opensearch_server.h"

#include <gtest/gtest.h>

namespace muster::testing {
namespace {

TEST(OpenSearchServer, KeepsItsDocumentsAcrossAKill) {
  if (const std::string reason = OpenSearchServer::Unavailable(); !reason.empty()) {
    GTEST_SKIP() << "OpenSearch is not available: " << reason;
  }
  OpenSearchServer server;  // its own: it is killed
  EXPECT_NE(server.Call("GET", "/").find("\"2.19.6\""), std::string::npos);
  server.Call("PUT", "/things/_doc/1", R"({"a":1.0})");
  server.Restart();
  EXPECT_NE(server.Call("GET", "/things/_doc/1").find(R"({"a":1.0})"), std::string::npos);
  EXPECT_THROW(server.Call("GET", "/nothing"), std::runtime_error);
}

}  // namespace
}  // namespace muster::testing
