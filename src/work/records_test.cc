#include "work/records.h"

#include <gtest/gtest.h>

namespace muster::work {
namespace {

TEST(WorkRecords, AnEndIsReadAsEveryVersionWroteIt) {
  EXPECT_EQ(EndBody().ToJson(), R"({"v":1})");
  EXPECT_EQ(EndBody{.confirmed = true}.ToJson(), R"({"v":1,"confirmed":true})");
  for (const char* announced : {"{}", R"({"v":1})"})
    EXPECT_FALSE(EndBody::FromJson(announced)->confirmed) << announced;
  for (const char* confirmed : {R"({"confirmed":true})", R"({"v":1,"confirmed":true})"})
    EXPECT_TRUE(EndBody::FromJson(confirmed)->confirmed) << confirmed;
}

TEST(WorkRecords, ARequestToSplitIsReadAsEveryVersionWroteIt) {
  EXPECT_EQ(SplitRequestBody{.by = "w"}.ToJson(), R"({"v":1,"by":"w"})");
  for (const char* body : {R"({"by":"w"})", R"({"v":1,"by":"w"})"})
    EXPECT_EQ(SplitRequestBody::FromJson(body)->by, "w") << body;
}

// Writes `body`, and again what is read from that.
template <class Body>
void ExpectText(const Body& body, const std::string& text) {
  EXPECT_EQ(body.ToJson(), text);
  const auto read = Body::FromJson(text);
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->ToJson(), text);
}

// Released versions read and write these bytes.
TEST(WorkRecords, ARunIsWrittenAsInReleases) {
  RunBody run{.incarnation = "i", .source = "s", .sink = "t", .transforms = "x"};
  run.created_ms = 1;
  run.since_ms = 2;
  run.begun_ms = 3;
  run.max_failures = *FailureLimit::Parse("7");
  ExpectText(run, R"({"incarnation":"i","adopts":false,"state":"preparing","pages":0,"source":"s",)"
                  R"("sink":"t","transforms":"x","selection":null,"max_failures":"7",)"
                  R"("created_ms":1,"since_ms":2,"begun_ms":3,"v":1})");
  run.adopts = run.ready = run.removing = true;
  run.pages = 4;
  run.selection = "a*";
  run.stopped = StopBody{.read = 10,
                         .failed = 3,
                         .most = {.reason = "why", .count = 2, .id = "d", .message = "an example"}};
  ExpectText(run, R"({"incarnation":"i","adopts":true,"state":"ready","pages":4,"source":"s",)"
                  R"("sink":"t","transforms":"x","selection":"a*","max_failures":"7",)"
                  R"("created_ms":1,"since_ms":2,"begun_ms":3,"stopped":{"read":10,"failed":3,)"
                  R"("most":{"reason":"why","count":2,"id":"d","message":"an example"}},)"
                  R"("removing":true,"v":1})");
}

TEST(WorkRecords, TheOthersAreWrittenAsInReleases) {
  ExpectText(PageBody{.items = {"a", "b"}}, R"({"items":["a","b"],"v":1})");
  ExpectText(ChosenBody{.target = "t", .collection = "c"},
             R"({"v":1,"target":"t","collection":"c"})");
  ExpectText(TargetBody{.target = "t", .identity = "i"}, R"({"target":"t","identity":"i","v":1})");
  ExpectText(BudgetBody{.read = 3, .earlier_failed = 1}, R"({"v":1,"read":3,"earlier_failed":1})");
  ExpectText(PrepareBody{}, R"({"state":"open","collection":0,"partitions":0,"pages":0,"v":1})");
  ExpectText(
      PrepareBody{
          .done = true, .selected = {"a%", "\xff"}, .collection = 1, .partitions = 2, .pages = 3},
      R"({"state":"done","collection":1,"partitions":2,"pages":3,"selected":["a%25","%FF"],)"
      R"("v":1})");
  RedriveBody redrive{.letters = {1, 2}};
  redrive.Count("a", {.written = 1, .skipped = 2});
  ExpectText(redrive, R"({"letters":"AAAAAAAAAAEAAAAAAAAAAg==","written":1,"skipped":2,)"
                      R"("items":{"a":[1,2]},"v":1})");
  redrive.Count("b", {.written = 1, .skipped = 0, .added = 5});
  ExpectText(redrive, R"({"letters":"AAAAAAAAAAEAAAAAAAAAAg==","written":2,"skipped":2,)"
                      R"("items":{"a":[1,2],"b":[1,0,5]},"added":5,"v":1})");
  ExpectText(RedrivePageBody{.number = 9,
                             .target = "t",
                             .letters = {1},
                             .items = {"a"},
                             .item_of = {0},
                             .failed = {0}},
             R"({"number":9,"target":"t","letters":"AAAAAAAAAAE=","items":["a"],"item_of":[0],)"
             R"("failed":[0],"v":1})");
}

TEST(WorkRecords, DamagedOnesAreRefused) {
  const auto refused = [](const auto& read) {
    return !read && read.error().code == Code::kCorrupt;
  };
  for (const char* run : {R"({"state":"ready"})", R"({"incarnation":"i","state":"odd"})",
                          R"({"incarnation":"","state":"ready"})",
                          R"({"incarnation":"i","state":"ready","pages":-1})",
                          R"({"incarnation":"i","state":"ready","max_failures":"many"})",
                          R"({"incarnation":"i","state":"ready","stopped":{"read":1}})"}) {
    EXPECT_TRUE(refused(RunBody::FromJson(run))) << run;
  }
  EXPECT_TRUE(refused(PrepareBody::FromJson(R"({"pages":1,"selected":["%zz"]})")));
  EXPECT_TRUE(refused(RedriveBody::FromJson(R"({"written":1,"items":{"a":[1]}})")));
  EXPECT_TRUE(refused(RedrivePageBody::FromJson(R"({"number":1,"item_of":[0]})")));
}

TEST(WorkRecords, NewerOnesAreRefused) {
  for (const char* body : {R"({"v":2})", R"({"v":2,"confirmed":true})"}) {
    const auto end = EndBody::FromJson(body);
    ASSERT_FALSE(end);
    EXPECT_TRUE(IsNewer(end.error()));
    EXPECT_NE(end.error().message.find("the end of a run was written by a newer version of muster: "
                                       "in format 2"),
              std::string::npos)
        << end.error().message;
  }
  const auto request = SplitRequestBody::FromJson(R"({"v":2,"by":"w"})");
  ASSERT_FALSE(request);
  EXPECT_TRUE(IsNewer(request.error()));
}

}  // namespace
}  // namespace muster::work
