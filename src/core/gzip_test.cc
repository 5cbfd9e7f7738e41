#include "core/gzip.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// "hello " a hundred times.
std::string Packed() {
  static constexpr unsigned char kBytes[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00,
                                             0x02, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57,
                                             0xc8, 0x18, 0x25, 0x47, 0x49, 0xaa, 0x92, 0x00,
                                             0xf3, 0x31, 0xa2, 0x0d, 0x58, 0x02, 0x00, 0x00};
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}

TEST(Gzip, UnpacksCompleteData) {
  const auto unpacked = Gunzip(Packed(), 600);
  ASSERT_TRUE(unpacked) << unpacked.error().ToString();
  EXPECT_EQ(unpacked->size(), 600u);
  EXPECT_TRUE(unpacked->starts_with("hello hello "));
}

TEST(Gzip, UnpacksEveryMember) {
  const auto unpacked = Gunzip(Packed() + Packed(), 1'200);
  ASSERT_TRUE(unpacked) << unpacked.error().ToString();
  EXPECT_EQ(unpacked->size(), 1'200u);
}

TEST(Gzip, EveryTruncationIsCorrupt) {
  for (size_t size = 0; size < Packed().size(); ++size) {
    const auto unpacked = Gunzip(Packed().substr(0, size), 1'000);
    ASSERT_FALSE(unpacked) << size;
    EXPECT_EQ(unpacked.error().code, Code::kCorrupt);
  }
}

TEST(Gzip, FlippedByteNeverYieldsAnotherText) {
  const std::string whole = *Gunzip(Packed(), 600);
  for (size_t at = 0; at < Packed().size(); ++at) {
    std::string damaged = Packed();
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    const auto unpacked = Gunzip(damaged, 1'000'000);
    // No checksum covers the header.
    EXPECT_TRUE(!unpacked || *unpacked == whole) << at;
  }
}

TEST(Gzip, TrailingGarbageIsCorrupt) {
  EXPECT_EQ(Gunzip(Packed() + "more", 1'000).error().code, Code::kCorrupt);
}

TEST(Gzip, StopsAtTheLimit) { EXPECT_EQ(Gunzip(Packed(), 599).error().code, Code::kInvalid); }

TEST(Gzip, PackedTextUnpacksToTheSame) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919 % 10'007);
  for (const std::string& each : {std::string(), std::string("x"), text}) {
    const auto unpacked = Gunzip(Gzip(each), text.size());
    ASSERT_TRUE(unpacked) << unpacked.error().ToString();
    EXPECT_EQ(*unpacked, each);
  }
  EXPECT_LT(Gzip(text).size(), text.size());
}

}  // namespace
}  // namespace muster
