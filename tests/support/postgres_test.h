#pragma once

#include <gtest/gtest.h>

#include "support/postgres_server.h"

namespace muster::testing {

// Tests that share a database, which is empty at the start of each. Skipped if none is available.
class PostgresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = PostgresServer::Unavailable(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    server_ = &PostgresServer::Shared();
    server_->Clear();
  }

  static inline PostgresServer* server_ = nullptr;
};

}  // namespace muster::testing
