#include "work/item_body.h"

#include <gtest/gtest.h>

#include "muster/store.h"
#include "work/records.h"

namespace muster::work {
namespace {

TEST(ItemBody, SurvivesTheRoundTrip) {
  ItemBody body = ItemBody::Of({.collection = "a__b",
                                .shard = 3,
                                .part = "x\xff.jsonl",
                                .begin = std::string("\0\x01", 2),
                                .end = "99",
                                .documents = 12,
                                .bytes = 34});
  body.progress = body.progress.CutAt("50");
  body.state = ItemBody::State::kQuarantined;
  body.fraction = 0.25;
  body.error = "line\n\"quoted\"";
  body.created = 1;
  const ItemBody back = ItemBody::FromJson(body.ToJson()).value();
  EXPECT_EQ(back.partition, body.partition);
  EXPECT_EQ(back.progress, body.progress);
  EXPECT_EQ(back.state, body.state);
  EXPECT_EQ(back.fraction, body.fraction);
  EXPECT_EQ(back.error, body.error);
  ASSERT_EQ(back.Successors().size(), 1u);
  EXPECT_EQ(back.Successors()[0].begin, "50");
  EXPECT_EQ(back.Successors()[0].end, "99");
}

// Released versions read and write these bytes.
TEST(ItemBody, IsWrittenAsInReleases) {
  ItemBody item = ItemBody::Of({.collection = "c"});
  EXPECT_EQ(item.ToJson(),
            R"({"v":1,"state":"open","partition":{"collection":"c","shard":0,"begin":"","end":""},)"
            R"("progress":{"position":"","end":"","read":0,"written":0,"skipped":0,"failed":0,)"
            R"("bytes":0}})");
  item = ItemBody::Of({.collection = "c",
                       .shard = 3,
                       .part = "x\xff",
                       .begin = "1",
                       .end = "9",
                       .documents = 12,
                       .bytes = 34,
                       .follows = true,
                       .mark = "m"},
                      "c__3__0", 2);
  item.state = ItemBody::State::kDone;
  item.waits = 1;
  item.progress = item.progress.CutAt("5");
  item.fraction = 0.0;
  item.kept = item.whole = true;
  item.error = "e";
  item.failures = 2;
  item.failed = {"w1", "w2"};
  item.reported = 3;
  item.since_ms = 4;
  item.until_ms = 5;
  item.reasons.Add({.reason = "why", .count = 1, .id = "d", .message = "x"});
  const std::string text =
      R"({"v":1,"state":"done","partition":{"collection":"c","shard":3,"part":"x%FF","begin":"1",)"
      R"("end":"9","documents":12,"bytes":34,"follows":true,"mark":"m"},"progress":{"position":"",)"
      R"("end":"5","read":0,"written":0,"skipped":0,"failed":0,"bytes":0,"former_ends":["9"]},)"
      R"("from":"c__3__0","rank":2,"waits":1,"fraction":0.0,"kept":true,"whole":true,)"
      R"("successors":["c__3__5"],"created":0,"reasons":[{"reason":"why","count":1,"id":"d",)"
      R"("message":"x"}],"error":"e","failures":2,"failed":["w1","w2"],"reported":3,"since_ms":4,)"
      R"("since_read":0,"until_ms":5})";
  EXPECT_EQ(item.ToJson(), text);
  const auto read = ItemBody::FromJson(text);
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->ToJson(), text);
}

TEST(ItemBody, ForeignBodyIsNamed) {
  EXPECT_EQ(ItemBody::FromJson(R"({"not":"ours"})").error().code, Code::kCorrupt);
}

TEST(ItemKey, TooLongNameBecomesAHash) {
  const std::string key = ItemKey("run", "orders__0__" + std::string(600, 'x'));
  EXPECT_TRUE(key.starts_with("run/sha256-"));
  EXPECT_LE(key.size(), store::kMaxKeyBytes);
}

// As version 0.1 wrote them, before bodies had a format.
TEST(ItemBody, ReadsUnversionedBodies) {
  const auto item = ItemBody::FromJson(
      R"({"state":"open","partition":{"collection":"orders","shard":1,"begin":"","end":"",)"
      R"("documents":20},"progress":{"position":"7","end":"9","read":7,"written":6,)"
      R"("skipped":0,"failed":1,"bytes":14,"former_ends":["20"]},"fraction":0.5,"kept":true,)"
      R"("successors":["orders__1__9"],"created":1,"error":"away","failures":2,"failed":["w1"],)"
      R"("since_ms":1700000000000,"since_read":3})");
  ASSERT_TRUE(item) << item.error().ToString();
  EXPECT_EQ(item->partition.shard, 1);
  EXPECT_EQ(item->progress.position, "7");
  EXPECT_EQ(item->progress.counts.failed, 1);
  EXPECT_EQ(item->failed, std::vector<std::string>{"w1"});
  ASSERT_EQ(item->Successors().size(), 1u);
  const auto run = RunBody::FromJson(
      R"({"incarnation":"i1","adopts":false,"state":"ready","pages":1,"source":"s","sink":"t",)"
      R"("transforms":"","selection":null,"created_ms":1700000000000})");
  ASSERT_TRUE(run) << run.error().ToString();
  EXPECT_TRUE(run->ready);
  EXPECT_EQ(run->since_ms, 1700000000000);
}

}  // namespace
}  // namespace muster::work
