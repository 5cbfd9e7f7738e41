#pragma once

#include <gtest/gtest.h>

#include "support/postgres_server.h"

namespace muster::testing {

// Tests that share a server, each with an empty schema `public`. Skipped where none can be had.
class PostgresTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (PostgresServer::Unavailable().empty()) server_ = new PostgresServer;
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << PostgresServer::Unavailable();
    server_->Exec(
        "SET client_min_messages = error; DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  }

  static inline PostgresServer* server_ = nullptr;
};

}  // namespace muster::testing
