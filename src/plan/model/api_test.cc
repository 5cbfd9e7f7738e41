// The functions of muster/plan.h on files.

#include <gtest/gtest.h>

#include "core/json.h"
#include "muster/plan.h"
#include "support/temporary_folder.h"

namespace muster::plan {
namespace {

constexpr const char* kPlan = R"(plan: p
inputs: {region: {default: eu}}
variables: {app-name: crm, region: us-east-1, account: "123456789012", customer: acme}
profiles: {here: {source: a, target: b, staging: c}, there: {kind: aws}}
objects: {A: {rows: 1000}}
scripts: {load-a: {file: a.sql, schema: s, table: a}}
ranks:
  - {rank: 1, extract: [A], transform: [load-a]}
)";

class PlanApi : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  const std::string path_ = folder_.Write("plan.yaml", kPlan);
};

TEST_F(PlanApi, ASummaryHasTheChosenProfileAndTheInputs) {
  const auto first = SummarizePlan(path_);
  ASSERT_TRUE(first) << first.error().ToString();
  EXPECT_EQ(first->name, "p");
  EXPECT_EQ(first->profile.name, "here");
  EXPECT_EQ(first->profile.kind, ProfileKind::kLocal);
  EXPECT_EQ(first->profiles.size(), 2U);
  EXPECT_EQ(first->inputs.at("region"), "eu");
  EXPECT_EQ(SummarizePlan(path_, {.profile = "there"})->profile.kind, ProfileKind::kAws);
  EXPECT_EQ(SummarizePlan(path_, {.profile = "nowhere"}).error().code, Code::kInvalid);
}

TEST_F(PlanApi, MissingScriptsAreReportedForARunOnly) {
  EXPECT_TRUE(CheckPlanFile(path_).empty());
  ASSERT_EQ(CheckPlan(path_).size(), 1U);
  EXPECT_NE(CheckPlan(path_).front().find("a.sql"), std::string::npos);
  EXPECT_EQ(CheckPlanFile(folder_.At("none.yaml")).size(), 1U);
}

TEST_F(PlanApi, UnusableSecretsAreReportedBeforeTheRun) {
  const std::string path = folder_.Write("secret.yaml", R"(plan: p
inputs: {tenantId: {}}
variables: {app-name: crm, region: us-east-1, account: "123456789012", customer: acme}
profiles:
  here: {source: 'a$', target: 'postgresql://me:${env:MUSTER_TEST_PW}@{region}.db/{tenantId}', staging: c}
  there: {kind: aws}
objects: {A: {rows: 1000}}
scripts: {load: {file: load.sql, schema: s, table: a}}
ranks: [{rank: 1, extract: [A], transform: [load]}]
)");
  ASSERT_TRUE(CheckPlanFile(path).empty()) << CheckPlanFile(path).front();
  const auto check = [&](const std::string& tenant, const std::string& profile = "here") {
    return CheckPlanSecrets(path,
                            {{"tenantId", tenant}, {"environment", "dev"}, {"migrationId", "m"}},
                            {.profile = profile});
  };
  unsetenv("MUSTER_TEST_PW");
  const auto missing = check("t1");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kInvalid);
  EXPECT_NE(missing.error().ToString().find("target of profile here: secret reference "
                                            "${env:MUSTER_TEST_PW}: not set"),
            std::string::npos)
      << missing.error().ToString();
  EXPECT_TRUE(check("t1", "there"));
  setenv("MUSTER_TEST_PW", "correct horse", 1);
  EXPECT_EQ(check("t1").value(), "postgresql://me:${env:MUSTER_TEST_PW}@us-east-1.db/t1");
  EXPECT_NE(check("t1?host=elsewhere").error().message.find("special characters"),
            std::string::npos);
  EXPECT_NE(check("${env:HOME}").error().message.find("came with data"), std::string::npos);
  unsetenv("MUSTER_TEST_PW");
}

TEST_F(PlanApi, PicturesAreDrawnInEveryFormat) {
  EXPECT_NE(DrawPlan(path_, PlanPicture::kDot)->find("digraph"), std::string::npos);
  EXPECT_NE(DrawPlan(path_, PlanPicture::kSvg)->find("<svg"), std::string::npos);
  EXPECT_FALSE(DrawPlan(path_, PlanPicture::kText)->empty());
  EXPECT_EQ(DrawPlan(folder_.At("none.yaml"), PlanPicture::kText).error().code, Code::kInvalid);
}

TEST_F(PlanApi, PlansAreComparedByWhatTheyMean) {
  std::string text = kPlan;
  EXPECT_TRUE(ComparePlans(path_, folder_.Write("same.yaml", "# a comment\n" + text))->empty());
  text.replace(text.find("1000"), 4, "2000");
  const auto differences = ComparePlans(path_, folder_.Write("other.yaml", text));
  ASSERT_TRUE(differences && !differences->empty());
  EXPECT_EQ(differences->front().after, 2000);
}

TEST_F(PlanApi, PriceFileOverridesThePlan) {
  const auto cost = [&](const std::string& prices) {
    return (*ExplainPlan(path_, {.profile = "there", .prices = prices}))["cost"]["total"];
  };
  const std::string expensive = folder_.Write("prices.yaml", "per_dpu_hour: 1000\n");
  EXPECT_NE(ToJsonText(cost("")), ToJsonText(cost(expensive)));
  EXPECT_FALSE(ExplainPlan(path_, {.profile = "there", .prices = folder_.At("none.yaml")}));
}

TEST_F(PlanApi, OutlookWithoutPastRunsUsesThePlansEstimates) {
  const auto store = *store::OpenStore("memory:", RealEnv());
  const auto json = ExplainPlan(path_, *store, {}, RealEnv());
  ASSERT_TRUE(json) << json.error().ToString();
  EXPECT_FALSE(json->contains("past"));
  EXPECT_EQ(ToJsonText(*json), ToJsonText(*ExplainPlan(path_)));
}

TEST_F(PlanApi, ADeploymentHasTheStateMachineAndATemplate) {
  const auto files = DeployPlan(path_, {.variables = {{"environment", "dev"}}, .profile = "there"});
  ASSERT_TRUE(files) << files.error().ToString();
  EXPECT_EQ(files->front().name, "definition.asl.json");
  EXPECT_EQ(files->back().name, "template.json");
  for (const DeploymentFile& file : *files) {
    EXPECT_TRUE(Json::accept(file.text)) << file.name;
    EXPECT_EQ(file.text.back(), '\n');
  }
}

}  // namespace
}  // namespace muster::plan
