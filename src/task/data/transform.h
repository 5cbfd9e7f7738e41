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

// A script to run, as in transform_executor.h.
struct TransformJob {
  std::string script;  // its path, for messages
  std::string text;
  Staging staging;
  std::string target;
  std::vector<std::pair<std::string, std::string>> arguments;
  LoadFence fence;
  std::function<void(int64_t rows)> progress = {};  // of the table that is being loaded
  OnWait on_wait = {};

  // Empty if not given.
  std::string Argument(std::string_view name) const;
};

// Runs it. The result is the task's, even if an earlier try of the same call committed it.
Result<Json> RunTransform(const TransformJob& job, Env& env, const std::stop_token& stop);

}  // namespace muster::task
