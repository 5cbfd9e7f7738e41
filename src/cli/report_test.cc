#include "cli/report.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/exit_codes.h"
#include "core/secrets.h"

namespace muster::cli {
namespace {

std::string Report(const Error& error, bool json) {
  std::ostringstream err;
  ReportError(err, error, json);
  return err.str();
}

TEST(Report, MessageAndHintAreOneLineEach) {
  EXPECT_EQ(Report({Code::kInvalid, "no such\n\tthing\n", "look\nelsewhere"}, false),
            "muster: no such thing\n  hint: look elsewhere\n");
  EXPECT_EQ(Report({Code::kInvalid, "no\x1b[2J"}, false), "muster: no\uFFFD[2J\n");
}

TEST(Report, JsonIsOneObject) {
  EXPECT_EQ(Report({Code::kReadOnly, "a \"disk\"", "fix it"}, true),
            R"({"error":{"code":"read_only","message":"a \"disk\"","hint":"fix it"}})"
            "\n");
  EXPECT_EQ(Report({Code::kInternal, "x"}, true), R"({"error":{"code":"internal","message":"x"}})"
                                                  "\n");
}

TEST(Report, RedactsSecrets) {
  RememberSecret("report-s3cret");
  for (bool json : {false, true}) {
    std::string text = Report({Code::kInvalid, "pw report-s3cret", "not report-s3cret"}, json);
    EXPECT_EQ(text.find("s3cret"), std::string::npos) << text;
  }
}

TEST(ExitCodes, FollowFromTheErrorCode) {
  EXPECT_EQ(ExitCodeFor(Code::kInvalid), 2);
  EXPECT_EQ(ExitCodeFor(Code::kUnavailable), 5);
  EXPECT_EQ(ExitCodeFor(Code::kPermission), 5);
  EXPECT_EQ(ExitCodeFor(Code::kReadOnly), 5);
  EXPECT_EQ(ExitCodeFor(Code::kFull), 75);
  EXPECT_EQ(ExitCodeFor(Code::kUnknownOutcome), 75);
  EXPECT_EQ(ExitCodeFor(Code::kCancelled), 130);
  for (Code code : {Code::kNotFound, Code::kConflict, Code::kLeaseLost, Code::kCorrupt,
                    Code::kIncompatible, Code::kInternal}) {
    EXPECT_EQ(ExitCodeFor(code), 1);
  }
}

}  // namespace
}  // namespace muster::cli
