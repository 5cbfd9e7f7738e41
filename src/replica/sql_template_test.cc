#include "replica/sql_template.h"

#include <gtest/gtest.h>

namespace muster::replica {
namespace {

const events::Event kEvent{
    .position = 42,
    .stream = "order-1",
    .version = 3,
    .slot = 0,
    .id = "e1",
    .type = "Placed",
    .payload = R"({"total": 1.50, "big": 12345678901234567890123, "huge": 1e400, "who":
                      {"name": "O'Neil \"x\"", "none": null}, "items": [1, 2 ], "ok": true})",
    .metadata = "nothing",
    .time = WallTime(std::chrono::milliseconds(1'700'000'000'123))};

std::vector<SqlValue> ValuesOf(const std::string& text) {
  auto parsed = SqlTemplate::Parse(text, {});
  if (!parsed) throw std::runtime_error(parsed.error().ToString());
  auto values = parsed->Values(kEvent);
  if (!values) throw std::runtime_error(values.error().ToString());
  return *values;
}

TEST(SqlTemplate, NumbersItsParametersAndNamesEachOnce) {
  auto parsed = SqlTemplate::Parse(
      "UPDATE {orders} SET n = n + :payload.n::int WHERE id = :stream OR x = :payload.n",
      {"orders"});
  ASSERT_TRUE(parsed) << parsed.error().ToString();
  EXPECT_EQ(parsed->Sql(2), "UPDATE \"orders_v2\" SET n = n + $1::int WHERE id = $2 OR x = $1");
}

TEST(SqlTemplate, LeavesQuotesCommentsAndCastsAlone) {
  const std::string text =
      "SELECT ':stream', \":type\", a::text -- :id {x}\n/* :id */ , $f$ :version $f$";
  auto parsed = SqlTemplate::Parse(text, {});
  ASSERT_TRUE(parsed) << parsed.error().ToString();
  EXPECT_EQ(parsed->Sql(1), text);
  EXPECT_FALSE(parsed->TakesEvent());
}

TEST(SqlTemplate, TakesValuesAsTheyAreWritten) {
  EXPECT_EQ(
      ValuesOf(":position :stream :version :id :type :time"),
      (std::vector<SqlValue>{"42", "order-1", "3", "e1", "Placed", "2023-11-14 22:13:20.123+00"}));
  EXPECT_EQ(
      ValuesOf(":payload.total :payload.big :payload.huge :payload.who.name :payload.ok"),
      (std::vector<SqlValue>{"1.50", "12345678901234567890123", "1e400", "O'Neil \"x\"", "true"}));
  EXPECT_EQ(ValuesOf(":payload.items :payload.who.none :payload.missing :payload.total.deeper"),
            (std::vector<SqlValue>{"[1, 2 ]", std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_EQ(ValuesOf(":metadata"), (std::vector<SqlValue>{"nothing"}));
}

TEST(SqlTemplate, APayloadThatIsNotJsonIsAnError) {
  auto parsed = SqlTemplate::Parse(":payload.total", {});
  ASSERT_TRUE(parsed);
  for (const char* payload : {"", "nothing", "{\"total\": 1, oops", "{\"total\": }"}) {
    events::Event event = kEvent;
    event.payload = payload;
    auto values = parsed->Values(event);
    ASSERT_FALSE(values) << payload;
    EXPECT_EQ(values.error().code, Code::kInvalid);
    EXPECT_TRUE(values.error().message.starts_with("the payload is")) << values.error().message;
  }
  events::Event scalar = kEvent;
  scalar.payload = "17";
  EXPECT_EQ(*parsed->Values(scalar), (std::vector<SqlValue>{std::nullopt}));
}

TEST(SqlTemplate, UnclosedBraceIsAnError) {
  for (const char* text : {"{", "{orders", "UPDATE {orders} SET n = 1 WHERE {orders"}) {
    auto parsed = SqlTemplate::Parse(text, {"orders"});
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
    EXPECT_TRUE(parsed.error().message.starts_with("'{' is not closed: {"))
        << parsed.error().message;
  }
}

TEST(SqlTemplate, IsOneStatement) {
  for (const char* text :
       {"SELECT 1;", "SELECT ';' ; -- a; b\n", "/* ; */ SELECT 1 ;; ",
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; DELETE FROM c; END;",
        "CREATE FUNCTION f() RETURNS int AS $$ BEGIN RETURN 1; END; $$ LANGUAGE plpgsql"}) {
    auto parsed = SqlTemplate::Parse(text, {});
    EXPECT_TRUE(parsed) << parsed.error().ToString();
  }
  for (const char* text : {"", "  ", "-- nothing", ";", "SELECT 1; SELECT 2",
                           "INSERT INTO a VALUES (1);\nINSERT INTO b VALUES (1);"}) {
    auto parsed = SqlTemplate::Parse(text, {});
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
    EXPECT_FALSE(parsed.error().hint.empty());
  }
}

TEST(SqlTemplate, LeavesTheTransactionAlone) {
  for (const char* text : {"COMMIT", "rollback", " /* x */ End", "BEGIN", "START TRANSACTION",
                           "ABORT;", "SAVEPOINT a", "RELEASE a", "ROLLBACK TO a"}) {
    auto parsed = SqlTemplate::Parse(text, {});
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
  }
}

TEST(SqlTemplate, RejectsUnknownFieldsOfAnEvent) {
  for (const char* text : {":total", ":stream.x", "{orders}", "{orders", "{}"}) {
    auto parsed = SqlTemplate::Parse(text, {"customers"});
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
    EXPECT_FALSE(parsed.error().hint.empty());
  }
}

}  // namespace
}  // namespace muster::replica
