// `muster verify`, where some of it cannot be compared.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/program.h"
#include "core/json.h"

namespace muster::testing {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The comparison of a large cluster takes hours: what has been compared is reported.
TEST(Verify, WhatCannotBeComparedIsNotEqualAndHidesNothingElse) {
  const TempFolder folder;
  for (const std::string& side : {folder / "old", folder / "new"}) {
    std::filesystem::create_directory(side);
    std::ofstream(side + "/a.jsonl") << "{\"n\":1}\n";
    // The magic number of gzip, and no more.
    std::ofstream(side + "/b.jsonl.gz") << "\x1f\x8b\x08";
    std::ofstream(side + "/c.jsonl") << "{\"n\":1}\n";
  }
  std::ofstream(folder / "new/c.jsonl") << "";
  const std::vector<std::string> command{"verify", "jsonl:" + (folder / "old"),
                                         "jsonl:" + (folder / "new"), "--progress=none"};
  const Outcome text = RunMuster(command);
  EXPECT_NE(text.exit_code, 0);
  EXPECT_TRUE(Has(text.out, "not comparable")) << text.out;
  EXPECT_TRUE(Has(text.out, "equal")) << text.out;
  EXPECT_TRUE(Has(text.out, "different")) << text.out;
  EXPECT_TRUE(Has(text.err, "muster: b: ")) << text.err;

  std::vector<std::string> as_json = command;
  as_json.emplace_back("--json");
  const Outcome machine = RunMuster(as_json);
  EXPECT_EQ(machine.exit_code, text.exit_code);
  const Json report = ParseJson(machine.out, "report").value();
  EXPECT_EQ(report["equal"], false);
  ASSERT_EQ(report["collections"].size(), 3U) << report;
  EXPECT_EQ(report["collections"][0]["equal"], true) << report;
  EXPECT_EQ(report["collections"][1]["equal"], false) << report;
  EXPECT_TRUE(Has(report["collections"][1]["error"].get<std::string>(), "b.jsonl.gz")) << report;
  EXPECT_FALSE(report["collections"][2].contains("error")) << report;
  EXPECT_EQ(report["collections"][2]["equal"], false) << report;
}

}  // namespace
}  // namespace muster::testing
