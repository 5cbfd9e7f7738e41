// The records of a set: what is read back, and which formats are refused.

#include "replica/set_records.h"

#include <gtest/gtest.h>

namespace muster::replica {
namespace {

TEST(SetRecords, UnversionedBodiesAreRead) {
  const auto generation = Generation::FromBody(
      R"({"generation":3,"phase":"running","strategy":"recreate","partitions":1,"members":["a"],)"
      R"("slots":2,"owners":[0,0],"projections":["p"],"reason":"a worker joined","since_ms":5})");
  ASSERT_TRUE(generation) << generation.error().ToString();
  EXPECT_EQ(generation->number, 3);
  const auto member = MemberState::FromBody(
      R"({"state":"running","generation":3,"name":"a","handled":7,"pause_ms":1})");
  ASSERT_TRUE(member) << member.error().ToString();
  EXPECT_EQ(member->handled, 7);
  const auto desired = DesiredState::FromBody(R"({"paused":true,"active":2,"versions":[1,2]})");
  ASSERT_TRUE(desired) << desired.error().ToString();
  EXPECT_TRUE(desired->paused);
  EXPECT_FALSE(desired->forgotten);
  EXPECT_EQ(desired->highest, 2);
  const auto suspect = Suspect::FromBody(R"({"projection":"p","position":4,"hangs":1})");
  ASSERT_TRUE(suspect) << suspect.error().ToString();
  EXPECT_EQ(suspect->positions, std::vector<int64_t>{4});
}

// Writes `record`, and again what is read from that.
template <class Record>
void ExpectText(const Record& record, const std::string& text) {
  EXPECT_EQ(record.ToBody(), text);
  const auto read = Record::FromBody(text);
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->ToBody(), text);
}

// Released versions read and write these bytes.
TEST(SetRecords, AreWrittenAsInReleases) {
  ExpectText(Generation{.number = 3,
                        .phase = Generation::Phase::kRunning,
                        .strategy = Strategy::kIncremental,
                        .slots = 2,
                        .assignment = {.members = {"a"}, .owners = {0, 0}},
                        .projections = {"p"},
                        .orphans = {1},
                        .reason = "why",
                        .since_ms = 5},
             R"({"v":1,"generation":3,"phase":"running","strategy":"incremental","partitions":1,)"
             R"("members":["a"],"slots":2,"owners":[0,0],"projections":["p"],"reason":"why",)"
             R"("since_ms":5,"orphans":[1]})");
  ExpectText(MemberState{.phase = MemberState::Phase::kStopped, .generation = 3, .name = "a"},
             R"({"v":1,"state":"stopped","generation":3,"name":"a","handled":0,"pause_ms":0})");
  ExpectText(MemberState{.handled = 7,
                         .error = "e",
                         .pause_ms = 1,
                         .projections = {"p"},
                         .stopped = {"p@1"},
                         .serial = {"q"},
                         .busy = true},
             R"({"v":1,"state":"pending","generation":0,"name":"","handled":7,"pause_ms":1,)"
             R"("error":"e","projections":["p"],"stopped":["p@1"],"serial":["q"],"busy":true})");
  ExpectText(DesiredState{.definitions = {{"1", "hash"}}},
             R"({"v":1,"paused":false,"active":1,"versions":[1],"held":[],"dropping":[],)"
             R"("highest":1,"definitions":{"1":"hash"},"touched":0})");
  ExpectText(Suspect{.projection = "p", .worker = "w", .positions = {4}, .hangs = 1},
             R"({"v":1,"projection":"p","version":1,"worker":"w","positions":[4],"hangs":1})");
  EXPECT_EQ(ScaleBody(2), R"({"v":1,"workers":2})");
}

TEST(SetRecords, NamesOfNoPhaseAreDamage) {
  EXPECT_EQ(MemberState::FromBody(R"({"state":"odd"})").error().code, Code::kCorrupt);
  EXPECT_EQ(MemberState::FromBody("{}").error().code, Code::kCorrupt);
  EXPECT_EQ(Generation::FromBody(R"({"generation":1})")->strategy, Strategy::kRecreate);
}

template <class T>
void ExpectRefused(const Result<T>& read, const std::string& name) {
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kInvalid);
  EXPECT_NE(read.error().message.find(name), std::string::npos) << read.error().message;
  EXPECT_NE(read.error().message.find("format 99"), std::string::npos) << read.error().message;
}

TEST(SetRecords, BodiesOfANewerFormatAreRefusedByNameAndNumber) {
  const std::string body = R"({"v":99,"generation":1,"state":"ready","projection":"p"})";
  ExpectRefused(Generation::FromBody(body), "the record of a replica set");
  ExpectRefused(MemberState::FromBody(body), "the record of a worker");
  ExpectRefused(DesiredState::FromBody(body), "the record of a projection");
  ExpectRefused(Suspect::FromBody(body), "the record of suspect events");
}

TEST(SetRecords, WrittenBodiesNameTheirFormat) {
  const MemberState member{.name = "a"};
  for (const std::string& body : {Generation{}.ToBody(), member.ToBody(), DesiredState{}.ToBody(),
                                  Suspect{}.ToBody(), ScaleBody(2)}) {
    EXPECT_NE(body.find(R"("v":1)"), std::string::npos) << body;
  }
}

}  // namespace
}  // namespace muster::replica
