#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "muster/result.h"
#include "task/data/staging.h"
#include "task/data/transform_target.h"

namespace muster::task {

// One script to be run, as in transform_executor.h.
struct TransformJob {
  std::string script;  // its path, for a person
  std::string text;
  Staging staging;
  std::string target;
  std::vector<std::pair<std::string, std::string>> arguments;
  LoadFence fence;
  std::function<void(int64_t rows)> progress = {};  // of the table that is being loaded
  OnWait on_wait = {};

  // Empty: it is not given.
  std::string Argument(std::string_view name) const;
};

// Runs it; the answer is the task's result, also if another try of the same call has committed it.
Result<Json> RunTransform(const TransformJob& job, const std::stop_token& stop);

}  // namespace muster::task
