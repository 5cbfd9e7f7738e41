#include "core/base64.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Base64, EncodesWithPadding) {
  EXPECT_EQ(EncodeBase64(""), "");
  EXPECT_EQ(EncodeBase64("f"), "Zg==");
  EXPECT_EQ(EncodeBase64("fo"), "Zm8=");
  EXPECT_EQ(EncodeBase64("foo"), "Zm9v");
  EXPECT_EQ(EncodeBase64("\xff\xfe"), "//4=");
}

TEST(Base64, LongTextsAreEncodedInOnePiece) {
  const std::string text = EncodeBase64(std::string((size_t{3} << 20) + 1, 'a'));
  EXPECT_EQ(text.size(), (size_t{4} << 20) + 4);
  EXPECT_EQ(text.find('='), text.size() - 2);
}

TEST(Base64, DecodesOnlyValidBase64) {
  for (const std::string bytes : {"", "f", "fo", "foo", "\xff\xfe"}) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes);
  }
  const std::string large((size_t{3} << 20) + 1, 'a');
  EXPECT_EQ(DecodeBase64(EncodeBase64(large)), large);
  for (const char* bad : {"Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9 ", "Zm9v\n", "Zm9-"}) {
    EXPECT_EQ(DecodeBase64(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace muster
