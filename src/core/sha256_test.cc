#include "core/sha256.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Sha256, MatchesTheStandardsDigests) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(HashHex, KnowsTheAlgorithmsOfAwsAndJsonata) {
  EXPECT_EQ(*HashHex("SHA-256", "abc"), Sha256Hex("abc"));
  EXPECT_EQ(*HashHex("SHA-1", "abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(HashHex("SHA-384", "")->size(), 96U);
  EXPECT_EQ(HashHex("SHA-512", "")->size(), 128U);
  EXPECT_EQ(HashHex("sha-256", "abc").error().code, Code::kInvalid);
}

TEST(Sha256, PiecesHaveTheDigestOfTheWhole) {
  Sha256 digest;
  digest.Add("a");
  digest.Add("");
  digest.Add("bc");
  EXPECT_EQ(digest.Hex(), Sha256Hex("abc"));
}

// Test case 2 of RFC 4231.
TEST(Sha256, MatchesTheStandardsHmac) {
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace muster
