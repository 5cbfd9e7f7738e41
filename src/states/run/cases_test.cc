// Goal: the language means what AWS says it means. The cases are data: every line of a table is a
// machine, its input, the answers of its tasks and what must come of it.

#include "states/run/cases.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/json.h"

namespace muster::states {
namespace {

struct Counts {
  int cases = 0;
  int outcomes = 0;
  int causes = 0;
  int events = 0;
};

Counts RunTable(const std::string& path, bool expect_all) {
  Counts counts;
  const auto jsonata = NewJsonataEngine(RealEnv());
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  for (std::string line; std::getline(file, line);) {
    const auto result = RunCase(Json::parse(line), jsonata.get());
    ++counts.cases;
    if (!result) {
      ADD_FAILURE() << result.error().message;
      continue;
    }
    counts.outcomes += result->outcome ? 1 : 0;
    counts.causes += result->cause ? 1 : 0;
    counts.events += result->events ? 1 : 0;
    if (expect_all) {
      EXPECT_TRUE(result->passed()) << result->name << "\n" << result->difference;
    }
    if (!result->outcome) ADD_FAILURE() << result->name << "\n" << result->difference;
  }
  return counts;
}

TEST(Cases, EveryCaseOfOurTablePasses) {
  const Counts counts = RunTable(MUSTER_STATES_CASES, true);
  EXPECT_GE(counts.cases, 500);
}

#ifdef MUSTER_STATES_RECORDED
// What AWS itself did, recorded by others.
TEST(Cases, RecordingsOfAwsPass) {
  const Counts counts = RunTable(MUSTER_STATES_RECORDED, false);
  EXPECT_EQ(counts.outcomes, counts.cases);
  EXPECT_GE(counts.causes * 100, counts.cases * 98);
  EXPECT_GE(counts.events * 100, counts.cases * 98);
}
#endif

}  // namespace
}  // namespace muster::states
