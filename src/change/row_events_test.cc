#include "change/row_events.h"

#include <gtest/gtest.h>

namespace muster::change {
namespace {

using sql::PgChange;
using sql::PgField;
using sql::PgTuple;

constexpr uint32_t kInt4 = 23;
constexpr uint32_t kText = 25;
constexpr PgField kNull{};
constexpr PgField kUnchanged{PgField::Kind::kUnchanged};

PgField Text(std::string_view text) { return {PgField::Kind::kText, text}; }

class RowEventsTest : public ::testing::Test {
 protected:
  static sql::PgRelation Orders(char identity = 'd') {
    return {.oid = 7,
            .schema = "public",
            .table = "orders",
            .identity = identity,
            .columns = {{"id", true, kInt4}, {"note", identity == 'f', kText}}};
  }

  std::vector<events::StreamAppend> Events(RowEvents& rows, const PgChange& change) {
    std::vector<events::StreamAppend> out;
    const Status added = rows.Add(change, {.commit = 0x10, .number = 3, .xid = 5}, out);
    EXPECT_TRUE(added) << added.error().ToString();
    return out;
  }

  // "STREAM TYPE PAYLOAD" of each.
  static std::vector<std::string> InWords(const std::vector<events::StreamAppend>& appends) {
    std::vector<std::string> words;
    for (const auto& append : appends) {
      const events::NewEvent& event = append.events.at(0);
      words.push_back(append.stream + " " + event.type + " " + event.payload);
    }
    return words;
  }

  std::vector<std::string> Of(const PgChange& change, char identity = 'd') {
    RowEvents rows("shop", {});
    EXPECT_TRUE(rows.Learn(Orders(identity), {"id"}));
    return InWords(Events(rows, change));
  }
};

using Words = std::vector<std::string>;

TEST_F(RowEventsTest, AnInsertHasTheRow) {
  EXPECT_EQ(
      Of({.relation = 7, .row = {Text("42"), Text("a \"b\"")}}),
      (Words{R"(orders/42 orders.inserted {"key":{"id":42},"row":{"id":42,"note":"a \"b\""}})"}));
}

TEST_F(RowEventsTest, AnUpdateNamesWhatTheServerDidNotSend) {
  EXPECT_EQ(
      Of({.kind = PgChange::Kind::kUpdate, .relation = 7, .row = {Text("42"), kUnchanged}}),
      (Words{
          R"(orders/42 orders.updated {"key":{"id":42},"row":{"id":42},"unchanged":["note"]})"}));
}

TEST_F(RowEventsTest, AWholeOldRowHasWhatTheServerDidNotSend) {
  EXPECT_EQ(
      Of({.kind = PgChange::Kind::kUpdate,
          .relation = 7,
          .old = PgTuple{Text("42"), Text("x")},
          .row = {Text("42"), kUnchanged}},
         'f'),
      (Words{
          R"(orders/42 orders.updated {"key":{"id":42},"row":{"id":42,"note":"x"},"old":{"id":42,"note":"x"}})"}));
}

TEST_F(RowEventsTest, AChangeOfTheKeyIsADeleteAndAnInsert) {
  EXPECT_EQ(Of({.kind = PgChange::Kind::kUpdate,
                .relation = 7,
                .old = PgTuple{Text("1"), kNull},
                .row = {Text("2"), kNull}}),
            (Words{R"(orders/1 orders.deleted {"key":{"id":1}})",
                   R"(orders/2 orders.inserted {"key":{"id":2},"row":{"id":2,"note":null}})"}));
}

TEST_F(RowEventsTest, EventsOfAChangeHaveStableAndDistinctIds) {
  RowEvents rows("shop", {});
  ASSERT_TRUE(rows.Learn(Orders(), {}));
  const auto appends = Events(rows, {.kind = PgChange::Kind::kUpdate,
                                     .relation = 7,
                                     .old = PgTuple{Text("1"), kNull},
                                     .row = {Text("2"), kNull}});
  ASSERT_EQ(appends.size(), 2u);
  EXPECT_EQ(appends[0].events[0].id, "shop-0/10-3-old");
  EXPECT_EQ(appends[1].events[0].id, "shop-0/10-3");
}

TEST_F(RowEventsTest, KeysOfSeveralColumnsStayApart) {
  RowEvents rows("shop", {});
  ASSERT_TRUE(rows.Learn({.oid = 8,
                          .schema = "shop",
                          .table = "lines",
                          .columns = {{"a", true, kText}, {"b", true, kText}}},
                         {}));
  const auto stream = [&](std::string_view a, std::string_view b) {
    return Events(rows, {.relation = 8, .row = {Text(a), Text(b)}}).at(0).stream;
  };
  EXPECT_EQ(stream("1", "2"), "shop.lines/1/2");
  EXPECT_EQ(stream("x/y", "z"), "shop.lines/x%2Fy/z");
  EXPECT_NE(stream("x/y", "z"), stream("x", "y/z"));
  EXPECT_LE(stream(std::string(400, 'a'), std::string(400, 'b')).size(), events::kMaxStreamBytes);
}

TEST_F(RowEventsTest, StreamsOfDifferentTablesStayApart) {
  RowEvents rows("shop", {});
  const auto stream = [&](std::string_view schema, std::string_view table, std::string_view key) {
    EXPECT_TRUE(rows.Learn({.oid = 8,
                            .schema = std::string(schema),
                            .table = std::string(table),
                            .columns = {{"id", true, kText}}},
                           {}));
    return Events(rows, {.relation = 8, .row = {Text(key)}}).at(0).stream;
  };
  EXPECT_EQ(stream("public", "a", "b/c"), "a/b/c");
  EXPECT_EQ(stream("public", "a/b", "c"), "a%2Fb/c");
  EXPECT_EQ(stream("public", "a%2Fb", "c"), "a%252Fb/c");
  EXPECT_EQ(stream("shop", "orders", "1"), "shop.orders/1");
  EXPECT_EQ(stream("public", "shop.orders", "1"), "public.shop.orders/1");
}

TEST_F(RowEventsTest, NumbersThatJsonLacksAreText) {
  RowEvents rows("shop", {});
  ASSERT_TRUE(rows.Learn({.oid = 9,
                          .schema = "public",
                          .table = "n",
                          .columns = {{"id", true, kInt4},
                                      {"f", false, 701},
                                      {"n", false, 1700},
                                      {"b", false, 16},
                                      {"j", false, 3802}}},
                         {}));
  EXPECT_EQ(InWords(Events(rows, {.relation = 9,
                                  .row = {Text("-1"), Text("NaN"), Text("12345678901234567890.10"),
                                          Text("t"), Text("{\"a\": [1]}")}})),
            (Words{R"(n/-1 n.inserted {"key":{"id":-1},"row":{"id":-1,"f":"NaN",)"
                   R"("n":12345678901234567890.10,"b":true,"j":{"a": [1]}}})"}));
}

TEST_F(RowEventsTest, AnInsertIntoAnOutboxIsTheEventItDescribes) {
  RowEvents rows("shop", {Outbox{.table = "outbox", .metadata = "meta"}});
  const sql::PgRelation outbox{.oid = 3,
                               .schema = "public",
                               .table = "outbox",
                               .columns = {{"id", true, kText},
                                           {"aggregatetype", false, kText},
                                           {"aggregateid", false, kText},
                                           {"type", false, kText},
                                           {"payload", false, 3802},
                                           {"meta", false, 3802}}};
  ASSERT_TRUE(rows.Learn(outbox, {}));
  const PgTuple row = {Text("e-1"),    Text("order"),         Text("42"),
                       Text("Placed"), Text("{\"total\":1}"), Text("{\"user\":\"u\"}")};
  const auto appends = Events(rows, {.relation = 3, .row = row});
  EXPECT_EQ(InWords(appends), Words{R"(order/42 Placed {"total":1})"});
  EXPECT_EQ(appends[0].events[0].id, "e-1");
  EXPECT_EQ(appends[0].events[0].metadata, R"({"user":"u"})");
  EXPECT_TRUE(Events(rows, {.kind = PgChange::Kind::kDelete, .relation = 3, .old = row}).empty());
  const auto stream = [&](std::string_view type, std::string_view id) {
    PgTuple other = row;
    other[1] = Text(type);
    other[2] = Text(id);
    return Events(rows, {.relation = 3, .row = other}).at(0).stream;
  };
  EXPECT_EQ(stream("a", "b/c"), "a/b/c");
  EXPECT_EQ(stream("a/b", "c"), "a%2Fb/c");
}

TEST_F(RowEventsTest, AnOutboxWithoutItsColumnsIsRefused) {
  RowEvents rows("shop", {Outbox{.table = "orders"}});
  const Status learnt = rows.Learn(Orders(), {});
  ASSERT_FALSE(learnt);
  EXPECT_EQ(learnt.error().code, Code::kInvalid);
}

TEST_F(RowEventsTest, ChangeThatCannotBeAnEventIsRejectedByName) {
  RowEvents rows("shop", {});
  ASSERT_TRUE(rows.Learn(Orders(), {}));
  const std::string large(events::kMaxEventBytes, 'x');
  const auto appends = Events(rows, {.relation = 7, .row = {Text("42"), Text(large)}});
  ASSERT_EQ(appends.size(), 1u);
  EXPECT_EQ(appends[0].stream, "$follow/shop/rejected");
  EXPECT_NE(appends[0].events[0].payload.find("orders/42"), std::string::npos);
  EXPECT_EQ(rows.rejected(), 1);
}

TEST_F(RowEventsTest, AKeyAloneDoesNotStandInForValuesThatWereNotSent) {
  EXPECT_EQ(
      Of({.kind = PgChange::Kind::kUpdate,
          .relation = 7,
          .old = PgTuple{Text("1"), kNull},
          .row = {Text("2"), kUnchanged}}),
      (Words{R"(orders/1 orders.deleted {"key":{"id":1}})",
             R"(orders/2 orders.inserted {"key":{"id":2},"row":{"id":2},"unchanged":["note"]})"}));
}

TEST_F(RowEventsTest, ARowCannotPassForACheckpoint) {
  RowEvents rows("shop", {Outbox{.table = "outbox", .stream = {"s"}}});
  ASSERT_TRUE(rows.Learn({.oid = 3,
                          .schema = "public",
                          .table = "outbox",
                          .columns = {{"id", true, kText},
                                      {"s", false, kText},
                                      {"type", false, kText},
                                      {"payload", false, kText}}},
                         {}));
  const auto appends = Events(
      rows, {.relation = 3,
             .row = {Text("1"), Text("$follow/shop"), Text("follow.checkpoint"), Text("{}")}});
  ASSERT_EQ(appends.size(), 1u);
  EXPECT_EQ(appends[0].stream, "$follow/shop/rejected");
  EXPECT_EQ(rows.rejected(), 1);
}

TEST_F(RowEventsTest, ChangesThatFitNoTableAreCorrupt) {
  RowEvents rows("shop", {});
  ASSERT_TRUE(rows.Learn(Orders(), {}));
  std::vector<events::StreamAppend> out;
  for (const PgChange& change :
       {PgChange{.relation = 1, .row = {kNull}}, PgChange{.relation = 7, .row = {kNull}},
        PgChange{.relation = 7, .old = PgTuple{kNull}, .row = {kNull, kNull}}}) {
    const Status added = rows.Add(change, {}, out);
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code, Code::kCorrupt);
  }
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace muster::change
