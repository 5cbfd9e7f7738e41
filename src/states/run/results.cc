#include "states/run/results.h"

#include <array>

#include "core/json.h"
#include "core/timestamp.h"

namespace muster::states {
namespace {

// A file is built in memory, and 100,000 children may have 256 KiB of output each.
constexpr size_t kMostFileBytes = size_t{4} << 20;

constexpr char kAccount[] = "arn:aws:states:us-east-1:111111111111:";
constexpr std::array<const char*, 3> kLists = {"SUCCEEDED", "FAILED", "PENDING"};

const char* ListOf(FlowStatus status) {
  switch (status) {
    case FlowStatus::kSucceeded:
      return "SUCCEEDED";
    case FlowStatus::kRunning:
      return "PENDING";
    case FlowStatus::kFailed:
    case FlowStatus::kTimedOut:
    case FlowStatus::kAborted:
    case FlowStatus::kUnreadable:
      break;
  }
  return "FAILED";
}

std::string ListAfter(const ResultsProgress& progress, const std::string& list) {
  if (progress.only_succeeded) return "";
  for (size_t i = 0; i + 1 < kLists.size(); ++i) {
    if (list == kLists[i]) return kLists[i + 1];
  }
  return "";
}

// What a child adds to a list: nothing, its output, or all elements of its output.
void AddEntries(const ChildResult& child, const ResultWriter& writer, const std::string& machine,
                Json& entries) {
  if (child.status != FlowStatus::kSucceeded || writer.transformation == Transformation::kNone) {
    entries.push_back(DescribeChild(child, machine));
  } else if (writer.transformation == Transformation::kFlatten && child.output->is_array()) {
    for (const Json& element : *child.output) entries.push_back(element);
  } else {
    entries.push_back(*child.output);
  }
}

ResultsFile Manifest(const ResultsProgress& progress, const std::string& map_run) {
  Json files = Json::object();
  for (const char* list : {"FAILED", "PENDING", "SUCCEEDED"}) {
    files[list] = progress.files.contains(list) ? progress.files[list] : Json::array();
  }
  const Json manifest = {{"DestinationBucket", progress.parameters["Bucket"]},
                         {"MapRunArn", map_run},
                         {"ResultFiles", std::move(files)}};
  return {.key = progress.folder + "manifest.json", .body = ToJsonText(manifest)};
}

}  // namespace

Json DescribeChild(const ChildResult& child, const std::string& machine) {
  Json json = Json::object();
  if (!child.failure.cause.empty()) json["Cause"] = child.failure.cause;
  if (!child.failure.error.empty()) json["Error"] = child.failure.error;
  const bool succeeded = child.status == FlowStatus::kSucceeded;
  const bool started = child.status != FlowStatus::kRunning;
  if (started)
    json["ExecutionArn"] = std::string(kAccount) + "execution:" + machine + ":" + child.name;
  json["Input"] = child.input ? ToJsonText(*child.input) : "null";
  json["InputDetails"] = {{"Included", true}};
  if (started) json["Name"] = child.name;
  if (succeeded) {
    json["Output"] = ToJsonText(*child.output);
    json["OutputDetails"] = {{"Included", true}};
  }
  if (started) {
    json["RedriveCount"] = 0;
    json["RedriveStatus"] = succeeded ? "NOT_REDRIVABLE" : "REDRIVABLE";
    if (succeeded) json["RedriveStatusReason"] = "Execution is SUCCEEDED and cannot be redriven";
    json["StartDate"] = FormatTimestamp(child.start);
  }
  json["StateMachineArn"] = std::string(kAccount) + "stateMachine:" + machine;
  json["Status"] = started ? std::string(NameOf(child.status)) : "PENDING";
  if (started) json["StopDate"] = FormatTimestamp(child.stop);
  return json;
}

Json InlineResults(const std::vector<ChildResult>& children, const ResultWriter& writer,
                   const std::string& machine) {
  Json entries = Json::array();
  for (const ChildResult& child : children) {
    if (child.status == FlowStatus::kSucceeded) AddEntries(child, writer, machine, entries);
  }
  return entries;
}

Result<ResultsFile> NextResultsFile(const ResultsProgress& progress, const ResultWriter& writer,
                                    const std::string& machine, const std::string& map_run,
                                    const ChildResults& children) {
  const bool lines = writer.output_type == OutputType::kJsonLines;
  std::string list = progress.list;
  int64_t next = progress.next;
  while (!list.empty()) {
    std::string body;
    bool end = false;
    while (!end && body.size() < kMostFileBytes) {
      MUSTER_ASSIGN(const std::vector<ChildResult> page, children(next));
      end = page.empty();
      for (const ChildResult& child : page) {
        if (body.size() >= kMostFileBytes) break;
        next = child.index + 1;
        if (ListOf(child.status) != list) continue;
        Json entries = Json::array();
        AddEntries(child, writer, machine, entries);
        for (const Json& entry : entries) {
          if (!body.empty() && !lines) body += ',';
          body += ToJsonText(entry);
          if (lines) body += '\n';
        }
      }
    }
    if (!body.empty()) {
      const size_t number = progress.files.contains(list) ? progress.files[list].size() : 0;
      return ResultsFile{.key = progress.folder + list + "_" + std::to_string(number) +
                                (lines ? ".jsonl" : ".json"),
                         .body = lines ? std::move(body) : "[" + body + "]",
                         .list = list,
                         .next = end ? -1 : next};
    }
    list = ListAfter(progress, list);
    next = 0;
  }
  return Manifest(progress, map_run);
}

void ResultsFileWritten(ResultsProgress& progress, const ResultsFile& file) {
  if (progress.files.is_null()) progress.files = Json::object();
  if (!progress.files.contains(file.list)) progress.files[file.list] = Json::array();
  progress.files[file.list].push_back({{"Key", file.key}, {"Size", file.body.size()}});
  progress.list = file.next < 0 ? ListAfter(progress, file.list) : file.list;
  progress.next = std::max<int64_t>(0, file.next);
}

}  // namespace muster::states
