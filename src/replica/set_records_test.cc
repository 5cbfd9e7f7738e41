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
