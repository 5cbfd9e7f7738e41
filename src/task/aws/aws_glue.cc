#include <array>
#include <optional>

#include "task/aws/aws_jobs.h"

namespace muster::task {
namespace {

constexpr AwsNaming kNaming{"Glue", "AWSGlue", "AWSGlueException"};
constexpr int kMaxPages = 5;
constexpr const char* kTokenArgument = "--muster-token";

const AwsService& Glue() { return *FindAwsService("glue"); }

// Glue has no client tokens: the run of an earlier try is recognised by an argument. Runs are
// listed newest first.
OrFailure<std::optional<std::string>> FindRun(AwsCalls& calls, const std::string& job,
                                              const std::string& token, std::stop_token stop) {
  Json parameters = {{"JobName", job}, {"MaxResults", 200}};
  for (int page = 0; page < kMaxPages; ++page) {
    auto reply = calls.Call(Glue(), "GetJobRuns", parameters, kNaming, token, stop);
    if (!reply) return Unexpected(std::move(reply).error());
    for (const Json& run : reply->body.value("JobRuns", Json::array())) {
      const Json arguments = run.value("Arguments", Json::object());
      if (arguments.value(kTokenArgument, "") == token) return run.value("Id", "");
    }
    if (!reply->body.contains("NextToken")) break;
    parameters["NextToken"] = reply->body["NextToken"];
  }
  return std::nullopt;
}

}  // namespace

states::TaskOutcome StartGlueJob(AwsCalls& calls, const states::TaskCall& call, bool wait,
                                 std::chrono::milliseconds poll_after, std::stop_token stop) {
  if (!call.input.is_object() || !call.input.contains("JobName") ||
      !call.input["JobName"].is_string()) {
    return states::TaskFailure{"States.Runtime", "glue:startJobRun needs the parameter JobName"};
  }
  const std::string job = call.input["JobName"];
  auto run = FindRun(calls, job, call.token, stop);
  if (!run) return std::move(run).error();
  Json result = Json::object();
  if (*run) {
    result["JobRunId"] = **run;
  } else {
    Json parameters = call.input;
    parameters["Arguments"][kTokenArgument] = call.token;
    auto reply = calls.Call(Glue(), "StartJobRun", parameters, kNaming, call.token, stop);
    if (reply) {
      result = std::move(reply->body);
      if (!wait) AddSdkMetadata(result, reply->http);
    } else {
      // Without an answer, the run may have started.
      if (!IsPassingFailure(reply.error())) return std::move(reply).error();
      run = FindRun(calls, job, call.token, stop);
      if (!run || !*run) return std::move(reply).error();
      result["JobRunId"] = **run;
    }
  }
  if (!wait) return states::TaskSuccess{std::move(result)};
  return states::TaskPending{{{"JobName", job}, {"JobRunId", result["JobRunId"]}}, poll_after};
}

states::TaskOutcome PollGlueJob(AwsCalls& calls, const states::TaskCall& call, const Json& resume,
                                std::chrono::milliseconds poll_after, std::stop_token stop) {
  const Json parameters = {{"JobName", resume["JobName"]}, {"RunId", resume["JobRunId"]}};
  auto reply = calls.Call(Glue(), "GetJobRun", parameters, kNaming, call.token, stop);
  if (!reply) {
    // The job continues even while it cannot be queried.
    if (IsPassingFailure(reply.error())) return states::TaskPending{resume, poll_after};
    return std::move(reply).error();
  }
  Json run = reply->body.value("JobRun", Json::object());
  const std::string state = run.value("JobRunState", "");
  if (state == "SUCCEEDED") return states::TaskSuccess{std::move(run)};
  for (const char* ended : {"FAILED", "ERROR", "TIMEOUT", "STOPPED", "EXPIRED"}) {
    if (state == ended) return states::TaskFailure{"States.TaskFailed", ToJsonText(run)};
  }
  return states::TaskPending{resume, poll_after};
}

void StopGlueJob(AwsCalls& calls, const Json& resume, std::stop_token stop) {
  // Best effort: the task has ended.
  (void)calls.Call(Glue(), "BatchStopJobRun",
                   {{"JobName", resume["JobName"]}, {"JobRunIds", {resume["JobRunId"]}}}, kNaming,
                   "", std::move(stop));
}

}  // namespace muster::task
