#include "store/store_url.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace muster {
namespace {

TEST(StoreUrl, NamesBackendNamespaceAndTarget) {
  auto memory = ParseStoreUrl("memory:").value();
  EXPECT_EQ(memory.backend, StoreUrl::Backend::kMemory);
  EXPECT_EQ(memory.space, "muster");
  auto sqlite = ParseStoreUrl("sqlite:a/b%20c.db?namespace=team_1").value();
  EXPECT_EQ(sqlite.backend, StoreUrl::Backend::kSqlite);
  EXPECT_EQ(sqlite.space, "team_1");
  EXPECT_EQ(sqlite.target, "a/b c.db");
  auto postgres = ParseStoreUrl("postgres://me@[::1]:5433/db?sslmode=require&namespace=x").value();
  EXPECT_EQ(postgres.backend, StoreUrl::Backend::kPostgres);
  EXPECT_EQ(postgres.space, "x");
  EXPECT_EQ(postgres.target, "postgresql://me@[::1]:5433/db?sslmode=require");
}

TEST(StoreUrl, PasswordsComeByReferenceAndAreEncodedAgain) {
  setenv("MUSTER_TEST_PG_PASSWORD", "a@b/c d", 1);
  EXPECT_EQ(ParseStoreUrl("postgresql://me:${env:MUSTER_TEST_PG_PASSWORD}@h/db").value().target,
            "postgresql://me:a%40b%2Fc%20d@h/db");
}

TEST(StoreUrl, RefusesWhatItCannotOpenAndSaysWhatToWrite) {
  for (std::string text :
       {"muster.db", "mysql://h/db", "sqlite:", "sqlite://host/a.db", "sqlite:a.db?mode=ro",
        "memory:?x=1", "sqlite:a.db?namespace=Bad",
        "sqlite:a.db?namespace=", "sqlite:a?namespace=1a", "postgresql://me:hunter2@h/db",
        "postgresql://h/db?password=hunter2", "postgresql://me:${env:MUSTER_TEST_UNSET}@h/db"}) {
    auto url = ParseStoreUrl(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, Code::kInvalid) << text;
    EXPECT_FALSE(url.error().hint.empty()) << text;
    EXPECT_EQ(url.error().ToString().find("hunter2"), std::string::npos) << url.error().ToString();
  }
}

}  // namespace
}  // namespace muster
