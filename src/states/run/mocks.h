#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "muster/result.h"
#include "muster/states.h"

namespace muster::states {

// Answers calls of tasks from a table: for each state, the outcome of its n-th call.
//
//   {"Charge": {"0": {"Throw": {"Error": "Busy", "Cause": "later"}}, "1-9": {"Return": {"ok":
//   true}}}}
//
// or a whole mock configuration of AWS Step Functions Local, with the name of a test case.
class MockExecutor final : public TaskExecutor {
 public:
  // `machine` names the state machine in a whole configuration; empty: its only one. kInvalid: not
  // such a table.
  static Result<std::unique_ptr<MockExecutor>> FromJson(const Json& json,
                                                        const std::string& machine,
                                                        const std::string& test_case);

  bool Runs(std::string_view resource) const override;
  TaskOutcome Start(const TaskCall& call, TaskContext& context) override;
  TaskOutcome Poll(const TaskCall& call, const Json& resume, TaskContext& context) override;
  void Cancel(const TaskCall& call, const Json& resume, TaskContext& context) override;

 private:
  struct Answer {
    int64_t first = 0;
    int64_t last = 0;
    TaskOutcome outcome;
  };

  static Result<std::vector<Answer>> ReadAnswers(const std::string& state, const Json& json);

  std::map<std::string, std::vector<Answer>> answers_;  // by state
  Mutex mutex_;
  std::map<std::string, int64_t> calls_ GUARDED_BY(mutex_);  // so far, by state
};

}  // namespace muster::states
