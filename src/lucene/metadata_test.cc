#include "lucene/metadata.h"

#include <gtest/gtest.h>

#include "lucene/byte_writer.h"
#include "lucene/cbor.h"
#include "lucene/smile.h"

namespace muster::lucene {
namespace {

// {"name":"ab","n":-1,"list":[true,null,1000],"bin":<3 bytes>,"name again":{"name":""}}
std::string SmileSample() {
  std::string bytes = ":)\n\x05";
  bytes += "\xFA";
  bytes +=
      "\x83"
      "name"
      "\x41"
      "ab";
  bytes +=
      "\x80"
      "n"
      "\xC1";
  bytes +=
      "\x83"
      "list"
      "\xF8\x23\x21\x24\x1F\x90\xF9";  // 1000 is 2000 = 31 * 64 + 16
  bytes +=
      "\x82"
      "bin"
      "\xFD\x83";
  bytes += std::string("\x00\x01\xFF", 3);
  bytes +=
      "\x85"
      "nested"
      "\xFA\x40\x20\xFB";  // key 0 of those shared
  bytes += "\xFB";
  return bytes;
}

TEST(Smile, ReadsValuesSharedNamesAndBinary) {
  const auto json = ParseSmile(SmileSample(), "blob");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ((*json)["name"], "ab");
  EXPECT_EQ((*json)["n"], -1);
  EXPECT_EQ((*json)["list"], Json::parse("[true,null,1000]"));
  EXPECT_EQ((*json)["bin"], Json::binary({0, 1, 255}));
  EXPECT_EQ((*json)["nested"]["name"], "");
}

// As servers write it: a name of more than 64 bytes is shared as the others are.
TEST(Smile, LongNamesAreShared) {
  const std::string name(70, 'x');
  const auto json = ParseSmile(":)\n\x05\xFA\x34" + name +
                                   "\xFC\xC2"
                                   "\x80"
                                   "n"
                                   "\xFA\x40\xC4\x41\xC6\xFB\xFB",
                               "blob");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(*json, (Json{{name, 1}, {"n", {{name, 2}, {"n", 3}}}}));
}

// {"name":"ab","n":-5,"big":1000,"list":[true,null,1.5],"bin":<3 bytes>,"in":{"pieces":"abc"}}
std::string CborSample() {
  std::string bytes = "\xD9\xD9\xF7\xBF";
  bytes +=
      "\x64name\x62"
      "ab";
  bytes += "\x61n\x24";
  bytes +=
      "\x63"
      "big\x19\x03\xE8";
  bytes += std::string("\x64list\x83\xF5\xF6\xF9\x3E\x00", 11);
  bytes += std::string(
      "\x63"
      "bin\x43\x00\x01\xFF",
      8);
  bytes +=
      "\x62in\xA1\x66pieces\x7F\x61"
      "a\x62"
      "bc\xFF";
  bytes += "\xFF";
  return bytes;
}

TEST(Cbor, ReadsValuesAndPieces) {
  const auto json = ParseCbor(CborSample(), "blob");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ((*json)["name"], "ab");
  EXPECT_EQ((*json)["n"], -5);
  EXPECT_EQ((*json)["big"], 1000);
  EXPECT_EQ((*json)["list"], Json::parse("[true,null,1.5]"));
  EXPECT_EQ((*json)["bin"], Json::binary({0, 1, 255}));
  EXPECT_EQ((*json)["in"]["pieces"], "abc");
}

TEST(Cbor, RejectsTruncationsDepthAndUnknownTokens) {
  EXPECT_TRUE(EveryTruncation(CborSample(), [](auto cut) { return !ParseCbor(cut, "blob"); }));
  EXPECT_FALSE(ParseCbor(std::string(200, '\x81'), "blob"));
  EXPECT_EQ(ParseCbor("\x1C", "blob").error().code, Code::kIncompatible);
  EXPECT_FALSE(ParseCbor("\xBB\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFE", "blob"));
}

TEST(Metadata, MayBeCborOrYaml) {
  EXPECT_EQ((*ParseMetadata(CborSample(), "", "blob"))["n"], -5);
  const auto yaml = ParseMetadata("---\nname: \"12\"\nlength: 345\nok: true\n", "", "blob");
  ASSERT_TRUE(yaml) << yaml.error().message;
  EXPECT_EQ(*yaml, Json::parse(R"({"name":"12","length":345,"ok":true})"));
}

TEST(Smile, RejectsEveryTruncation) {
  EXPECT_TRUE(EveryTruncation(SmileSample(), [](auto cut) { return !ParseSmile(cut, "blob"); }));
}

TEST(Smile, RejectsDepthUnknownTokensAndUnsharedNames) {
  EXPECT_FALSE(ParseSmile(":)\n\x05" + std::string(200, '\xF8'), "blob"));
  EXPECT_EQ(ParseSmile(":)\n\x05\x26", "blob").error().code, Code::kIncompatible);
  EXPECT_FALSE(ParseSmile(":)\n\x05\xFA\x41\x20\xFB", "blob"));
}

TEST(Metadata, ChecksTheEnvelope) {
  ByteWriter writer;
  const std::string blob = Sealed(writer.Header("snapshot", 1).Raw(R"({"a":1})").bytes());
  EXPECT_EQ((*ParseMetadata(blob, "snapshot", "blob"))["a"], 1);
  EXPECT_EQ(ParseMetadata(blob, "metadata", "blob").error().code, Code::kIncompatible);
  EXPECT_TRUE(EveryTruncation(blob, [](auto cut) { return !ParseMetadata(cut, "snapshot", ""); }));
}

TEST(Metadata, ReadsPlainAndPackedJson) {
  EXPECT_EQ((*ParseMetadata(" {\"a\":1}", "", "blob"))["a"], 1);
  EXPECT_EQ((*ParseMetadata(std::string_view("ZV\0\0\7{\"a\":1}", 12), "", "blob"))["a"], 1);
  EXPECT_EQ(ParseMetadata("{\"a\":", "", "blob").error().code, Code::kCorrupt);
}

TEST(Metadata, RejectsOtherContentByName) {
  const auto text = ParseMetadata("<a/>", "", "repo/snap");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Code::kIncompatible);
  EXPECT_EQ(text.error().message.find("repo/snap: "), 0);
  EXPECT_EQ(ParseMetadata("---\n[a: ", "", "repo/snap").error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace muster::lucene
