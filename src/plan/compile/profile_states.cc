#include "plan/compile/profile_states.h"

#include "plan/compile/machine_data.h"

namespace muster::plan {

std::unique_ptr<ProfileStates> NewProfileStates(const Plan& plan, const Profile& profile,
                                                const RunIdentity& run) {
  return profile.kind == ProfileKind::kAws ? NewAwsStates(plan, run)
                                           : NewLocalStates(plan, profile, run);
}

Json RetryOf(const RetryRule& rule, const std::vector<std::string>& errors) {
  Json names = errors;
  names.push_back("States.TaskFailed");
  return Json::array({{{"ErrorEquals", names},
                       {"IntervalSeconds", rule.interval_s},
                       {"MaxAttempts", rule.attempts},
                       {"BackoffRate", rule.backoff}}});
}

Json CatchAll(const std::string& path, const std::string& next) {
  return Json::array(
      {{{"ErrorEquals", Json::array({"States.ALL"})}, {"ResultPath", path}, {"Next", next}}});
}

Json FailureMessage(const Rank& rank, Phase phase, const std::string& task,
                    const std::string& what) {
  return {{"rank", rank.number},
          {phase == Phase::kExtract ? "sourceObject" : "entity", task},
          {"error.$", ResultPathOf(task)},
          {"message", what + " failed for " + task + " in rank " + std::to_string(rank.number)}};
}

Json RetryService() {
  return Json::array({{{"ErrorEquals", Json::array({"States.TaskFailed"})},
                       {"IntervalSeconds", 2},
                       {"MaxAttempts", 5},
                       {"BackoffRate", 2}}});
}

}  // namespace muster::plan
