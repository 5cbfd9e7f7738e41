#include "core/signature.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(SignatureTest, VariablePartsAreReplaced) {
  EXPECT_EQ(SignatureOf("row 17 of 'orders': value 4200 is out of range"),
            "row # of '…': value # is out of range");
  EXPECT_EQ(SignatureOf("no such file: \"a/b.json\""), "no such file: '…'");
  EXPECT_EQ(SignatureOf("job jr_0a1b2c failed"), SignatureOf("job jr_77ff00 failed"));
  EXPECT_EQ(SignatureOf("2024-01-02T03:04:05 late"), SignatureOf("2025-11-12T13:14:15 late"));
}

TEST(SignatureTest, ApostropheIsNotAQuote) {
  EXPECT_EQ(SignatureOf("it doesn't fit, it can't"), "it doesn't fit, it can't");
}

TEST(SignatureTest, IsShortAndValidUtf8) {
  std::string umlauts;
  for (int i = 0; i < 500; ++i) umlauts += "ä ";
  const std::string signature = SignatureOf(umlauts);
  EXPECT_LE(signature.size(), 200U);
  EXPECT_TRUE(signature.ends_with("ä")) << signature;
  EXPECT_EQ(SignatureOf(""), "(no message)");
}

}  // namespace
}  // namespace muster
