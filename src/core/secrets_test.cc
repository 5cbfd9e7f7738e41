#include "core/secrets.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"

namespace muster {
namespace {

class SecretsTest : public ::testing::Test {
 protected:
  std::string WriteFile(const std::string& content) { return folder_.Write("secret", content); }

  testing::TemporaryFolder folder_;
};

TEST_F(SecretsTest, VariablesAreExpandedAndRedactedFromThenOn) {
  setenv("MUSTER_TEST_SECRET", "correct horse/battery", 1);
  EXPECT_EQ(Redact("correct horse/battery"), "correct horse/battery");
  EXPECT_EQ(ExpandSecrets("a $5 ${env:MUSTER_TEST_SECRET}!").value(),
            "a $5 correct horse/battery!");
  EXPECT_EQ(Redact("pw=correct horse/battery."), "pw=***.");
}

TEST_F(SecretsTest, FilesLoseOneTrailingNewline) {
  std::string path = WriteFile("from a file\n\n");
  EXPECT_EQ(ExpandSecrets("${file:" + path + "}").value(), "from a file\n");
  EXPECT_EQ(Redact("<from a file\n>"), "<***>");
}

TEST_F(SecretsTest, EncodedReferencesAreCounted) {
  EXPECT_EQ(CountSecretReferences("a $5 {x} $ {"), 0u);
  EXPECT_EQ(CountSecretReferences("${env:A}-${env:B"), 2u);
  EXPECT_EQ(CountSecretReferences("%24{env:A}$%7bfile:/x%7D"), 2u);
  EXPECT_EQ(CountSecretReferences("%2524%257Benv:A%257D"), 1u);
  EXPECT_EQ(CountSecretReferences("%-1 100% %2"), 0u);
  EXPECT_EQ(CountSecretReferences(std::string(1 << 20, '%')), 0u);
}

TEST_F(SecretsTest, FilesAreBounded) {
  std::string path = WriteFile(std::string(64 * 1024, 'x'));
  EXPECT_TRUE(ExpandSecrets("${file:" + path + "}"));
  path = WriteFile(std::string(64 * 1024 + 1, 'x'));
  EXPECT_EQ(ExpandSecrets("${file:" + path + "}").error().code, Code::kInvalid);
}

TEST_F(SecretsTest, EncodedFormsAreRedactedToo) {
  RememberSecret("p\"ss wörd/?>~1");
  EXPECT_EQ(Redact("p%22ss%20w%C3%B6rd%2F%3F%3E~1"), "***");
  EXPECT_EQ(Redact("p%22ss%20w%c3%b6rd%2f%3f%3e~1"), "***");
  EXPECT_EQ(Redact(R"({"k":"p\"ss wörd/?>~1"})"), R"({"k":"***"})");
  EXPECT_EQ(Redact(R"("p\"ss w\u00f6rd/?>~1")"), "\"***\"");
}

TEST_F(SecretsTest, Base64IsRedactedAtEveryAlignment) {
  RememberSecret("opensesame");
  EXPECT_EQ(Redact("b3BlbnNlc2FtZQ=="), "***Q==");
  // ":opensesame", "x:opensesame" and "me:opensesame!", as basic authentication encodes them.
  for (std::string text : {"Om9wZW5zZXNhbWU=", "eDpvcGVuc2VzYW1l", "bWU6b3BlbnNlc2FtZSE="}) {
    std::string redacted = Redact(text);
    EXPECT_NE(redacted.find("***"), std::string::npos) << redacted;
    EXPECT_LT(redacted.size(), 12U) << redacted;
  }
}

TEST_F(SecretsTest, OverlappingSecretsLeaveNoRemainder) {
  RememberSecret("abcd-1234");
  RememberSecret("1234-wxyz");
  EXPECT_EQ(Redact("[abcd-1234-wxyz]"), "[***]");
}

TEST_F(SecretsTest, ShortValuesStayReadable) {
  setenv("MUSTER_TEST_SHORT", "abc", 1);
  EXPECT_EQ(ExpandSecrets("${env:MUSTER_TEST_SHORT}").value(), "abc");
  EXPECT_EQ(Redact("abc"), "abc");
}

TEST_F(SecretsTest, ErrorsNameTheReference) {
  unsetenv("MUSTER_TEST_MISSING");
  for (std::string reference : {"${env:MUSTER_TEST_MISSING}", "${file:/nonexistent/muster}",
                                "${vault:x}", "${env:}", "${}", "${env}", "${file:/}"}) {
    auto result = ExpandSecrets("a " + reference);
    ASSERT_FALSE(result) << reference;
    EXPECT_EQ(result.error().code, Code::kInvalid);
    EXPECT_NE(result.error().message.find(reference), std::string::npos) << result.error().message;
    EXPECT_FALSE(result.error().hint.empty());
  }
}

TEST_F(SecretsTest, UnterminatedReferenceIsRejectedWithoutItsText) {
  auto result = ExpandSecrets("x ${hunter2");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kInvalid);
  EXPECT_EQ(result.error().ToString().find("hunter2"), std::string::npos);
}

TEST_F(SecretsTest, DistinguishesReferencesFromLiterals) {
  EXPECT_TRUE(IsSecretReference("${env:A}"));
  EXPECT_TRUE(IsSecretReference("${file:/a}"));
  EXPECT_FALSE(IsSecretReference("hunter2"));
  EXPECT_FALSE(IsSecretReference("${env:A}hunter2"));
  EXPECT_FALSE(IsSecretReference("${env:A}${env:B}x}"));
  EXPECT_FALSE(IsSecretReference("${env:A"));
  EXPECT_FALSE(IsSecretReference(""));
}

TEST_F(SecretsTest, ThreadsMayRememberAndRedactAtOnce) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) {
        std::string value = "thread-" + std::to_string(t) + "-" + std::to_string(i) + "!";
        RememberSecret(value);
        EXPECT_EQ(Redact("<" + value + ">"), "<***>");
      }
    });
  }
}

TEST_F(SecretsTest, FormsAreCheckedWithoutResolvingAnything) {
  for (const char* good : {"", "$5", "${env:MUSTER_TEST_MISSING}", "a${file:/none}b${env:X}"}) {
    EXPECT_TRUE(CheckSecretForms(good)) << good;
  }
  for (const char* bad : {"${vault:x}", "${env:}", "${env:A", "${env:A}${}"}) {
    EXPECT_EQ(CheckSecretForms(bad).error().code, Code::kInvalid) << bad;
  }
}

}  // namespace
}  // namespace muster
