#include "store/store_url.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::store {
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

TEST(StoreUrl, PasswordReferencesAreExpandedAndEncoded) {
  setenv("MUSTER_TEST_PG_PASSWORD", "a@b/c d", 1);
  EXPECT_EQ(ParseStoreUrl("postgresql://me:${env:MUSTER_TEST_PG_PASSWORD}@h/db").value().target,
            "postgresql://me:a%40b%2Fc%20d@h/db");
}

TEST(StoreUrl, NamesADynamoDbTable) {
  auto aws = ParseStoreUrl("dynamodb://eu-central-1/my.table_1-x?namespace=n").value();
  EXPECT_EQ(aws.backend, StoreUrl::Backend::kDynamoDb);
  EXPECT_EQ(aws.space, "n");
  EXPECT_EQ(aws.dynamodb.region, "eu-central-1");
  EXPECT_EQ(aws.dynamodb.table, "my.table_1-x");
  EXPECT_EQ(aws.dynamodb.endpoint, "https://dynamodb.eu-central-1.amazonaws.com");
  EXPECT_FALSE(aws.dynamodb.create);
  EXPECT_EQ(ParseStoreUrl("dynamodb://cn-north-1/muster").value().dynamodb.endpoint,
            "https://dynamodb.cn-north-1.amazonaws.com.cn");
  auto local =
      ParseStoreUrl("dynamodb://local/muster?endpoint=http://127.0.0.1:8000/&create=true&ca=a.pem")
          .value();
  EXPECT_EQ(local.dynamodb.endpoint, "http://127.0.0.1:8000");
  EXPECT_EQ(local.dynamodb.ca_file, "a.pem");
  EXPECT_TRUE(local.dynamodb.create);
}

TEST(StoreUrl, NamesAClusterAndItsAuthentication) {
  setenv("MUSTER_TEST_OS_SECRET", "open sesame", 1);
  auto plain = ParseStoreUrl("opensearch+http://h:9200/?namespace=x").value();
  EXPECT_EQ(plain.backend, StoreUrl::Backend::kOpenSearch);
  EXPECT_EQ(plain.space, "x");
  EXPECT_EQ(plain.opensearch.base_url, "http://h:9200");
  EXPECT_EQ(plain.opensearch.user, "");
  auto user =
      ParseStoreUrl("opensearch+https://me:${env:MUSTER_TEST_OS_SECRET}@[::1]/a%20b/c?ca=ca.pem")
          .value()
          .opensearch;
  EXPECT_EQ(user.base_url, "https://[::1]/a%20b/c");
  EXPECT_EQ(user.ca_file, "ca.pem");
  EXPECT_EQ(user.password, "open sesame");
  auto key = ParseStoreUrl("opensearch+https://h?api_key=${env:MUSTER_TEST_OS_SECRET}").value();
  EXPECT_EQ(key.opensearch.api_key, "open sesame");
  auto aws = ParseStoreUrl("opensearch+https://h?aws=eu-central-1").value();
  EXPECT_EQ(aws.opensearch.aws_region, "eu-central-1");
}

TEST(StoreUrl, RejectsInvalidUrlsWithAHint) {
  for (std::string text : {"muster.db",
                           "mysql://h/db",
                           "sqlite:",
                           "sqlite://host/a.db",
                           "sqlite:a.db?mode=ro",
                           "memory:?x=1",
                           "sqlite:a.db?namespace=Bad",
                           "sqlite:a.db?namespace=",
                           "sqlite:a?namespace=1a",
                           "postgresql://me:hunter2@h/db",
                           "postgresql://h/db?password=hunter2",
                           "dynamodb://eu-west-1/",
                           "dynamodb:muster",
                           "dynamodb://AKIA:hunter2@eu-west-1/muster",
                           "dynamodb://eu_west/muster",
                           "dynamodb://eu-west-1/a/b",
                           "dynamodb://eu-west-1:80/muster",
                           "dynamodb://eu-west-1/muster?create=yes",
                           "dynamodb://eu-west-1/muster?x=1",
                           "dynamodb://eu-west-1/muster?endpoint=ftp://h",
                           "dynamodb://eu-west-1/muster?endpoint=http://h/path",
                           "opensearch+https:",
                           "opensearch+https://me:hunter2@h",
                           "opensearch+https://me@h",
                           "opensearch+https://h?api_key=hunter2",
                           "opensearch+https://h?password=hunter2",
                           "opensearch+ftp://h",
                           "opensearch+https://h?api_key=${env:PATH}&aws=x",
                           "opensearch+https://c.eu-west-1.aoss.amazonaws.com?aws=eu-west-1",
                           "postgresql://me:${env:MUSTER_TEST_UNSET}@h/db"}) {
    auto url = ParseStoreUrl(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, Code::kInvalid) << text;
    EXPECT_FALSE(url.error().hint.empty()) << text;
    EXPECT_EQ(url.error().ToString().find("hunter2"), std::string::npos) << url.error().ToString();
  }
}

}  // namespace
}  // namespace muster::store
