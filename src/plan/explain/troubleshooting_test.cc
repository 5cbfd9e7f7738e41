#include "plan/explain/troubleshooting.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/json.h"

namespace muster::plan {
namespace {

TEST(Troubleshooting, EveryKnownFailureHasItsCauseAndRemedy) {
  std::ifstream file(MUSTER_PLAN_TROUBLES);
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const Json known = Json::parse(line);
    const auto remedy = RemedyFor(known["error"], known["cause"]);
    ASSERT_EQ(remedy.has_value(), known.contains("likely")) << line;
    if (!remedy) continue;
    EXPECT_EQ(remedy->likely, known["likely"]) << line;
    EXPECT_EQ(remedy->remedy, known["remedy"]) << line;
  }
  EXPECT_GT(cases, 5);
}

}  // namespace
}  // namespace muster::plan
