#include "states/asl/definition_reader.h"

#include <algorithm>

#include "core/timestamp.h"

namespace muster::states {

void DefinitionReader::ReadPass(State& state, Fields& fields) {
  ReadInputAndOutput(state, fields, true);
  if (!state.jsonata) {
    state.parameters = ReadTemplate(state, fields, "Parameters");
    state.result_path = ReadResultPath(fields);
    if (const Node* result = fields.Find("Result")) state.result = MakeValue(result->ToJson());
  }
  state.assign = ReadAssign(state, fields);
}

void DefinitionReader::CheckResource(const Node& node) {
  if (node.is_object()) {
    // CloudFormation substitutes the name later.
    const bool reference = node.members.size() == 1 && (node.members[0].key == "Ref" ||
                                                        node.members[0].key.starts_with("Fn::"));
    if (!reference) source_.Add(node.offset, "\"Resource\" must be a string");
    return;
  }
  if (!node.is_string() || node.text().empty()) {
    source_.Add(node.offset, "\"Resource\" must be a string: the ARN of what is to be called");
    return;
  }
  const std::string& text = node.text();
  if (size_t open = text.find("${"); open != std::string::npos) {
    if (text.find('}', open) == std::string::npos) source_.Add(node.offset, "\"${\" is not closed");
    return;
  }
  if (text.find(':') == std::string::npos) {
    source_.Add(node.offset, "\"Resource\" must be an ARN, \"arn:…\"");
    return;
  }
  const size_t function = text.find(":function:");
  if (!text.starts_with("arn:") || text.find(":lambda:") == std::string::npos ||
      function == std::string::npos)
    return;
  const std::string name = text.substr(function + 10);
  const size_t colon = name.find(':');
  if (colon == std::string::npos) return;
  const std::string alias = name.substr(colon + 1);
  const bool good = alias == "$LATEST" ||
                    (!alias.empty() && std::all_of(alias.begin(), alias.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_';
                    }));
  if (!good)
    source_.Add(node.offset, "bad version or alias of a Lambda function: \"" + alias + "\"");
}

void DefinitionReader::ReadTask(State& state, Fields& fields, const Node& node) {
  ReadInputAndOutput(state, fields, true);
  ReadResult(state, fields);
  state.assign = ReadAssign(state, fields);
  if (const Node* resource = fields.Find("Resource")) {
    CheckResource(*resource);
    if (resource->is_string()) state.resource = resource->text();
  } else {
    source_.Add(node.offset, "the Task \"" + state.name + "\" has no \"Resource\"");
  }
  if (const Node* credentials = fields.Find("Credentials")) {
    if (!credentials->is_object()) {
      source_.Add(credentials->offset, "\"Credentials\" must be an object");
    } else {
      state.credentials = ReadTemplate(state, fields, "Credentials");
    }
  }
  state.timeout =
      ReadComputed(state, fields, "TimeoutSeconds", Json::Type::kInteger, 1, kMaxSeconds);
  state.heartbeat =
      ReadComputed(state, fields, "HeartbeatSeconds", Json::Type::kInteger, 1, kMaxSeconds);
  if (state.timeout.literal && state.heartbeat.literal &&
      *state.heartbeat.literal >= *state.timeout.literal) {
    source_.Add(node.Find("HeartbeatSeconds")->offset,
                "\"HeartbeatSeconds\" must be less than \"TimeoutSeconds\"");
  }
  ReadRetry(state, fields);
  ReadCatch(state, fields);
}

void DefinitionReader::ReadWait(State& state, Fields& fields, const Node& node) {
  ReadInputAndOutput(state, fields, true);
  state.assign = ReadAssign(state, fields);
  state.seconds = ReadComputed(state, fields, "Seconds", Json::Type::kInteger, 0, kMaxSeconds);
  state.timestamp = ReadComputed(state, fields, "Timestamp", Json::Type::kString, 0, 0);
  if (state.timestamp.literal) {
    const auto& text = state.timestamp.literal->get_ref<const std::string&>();
    if (!ParseTimestamp(text)) {
      source_.Add(node.Find("Timestamp")->offset,
                  "not a time like \"2016-03-14T01:59:00Z\": \"" + text + "\"");
    }
  }
  int given = 0;
  for (std::string_view name : {"Seconds", "SecondsPath", "Timestamp", "TimestampPath"}) {
    given += fields.Has(name) ? 1 : 0;
  }
  if (given != 1) {
    source_.Add(node.offset,
                "a Wait has exactly one of \"Seconds\", \"Timestamp\" and their paths");
  }
}

void DefinitionReader::ReadFail(State& state, Fields& fields) {
  for (const auto& [name, target] : {std::pair<const char*, Computed*>{"Error", &state.error},
                                     std::pair<const char*, Computed*>{"Cause", &state.cause}}) {
    const std::string path_name = std::string(name) + "Path";
    const Node* path = state.jsonata ? nullptr : fields.Find(path_name);
    if (path != nullptr && path->is_string() && path->text().starts_with("States.")) {
      target->field = path_name;
      auto query = Query::ParsePathOrIntrinsic(path->text());
      if (!query) {
        source_.Add(path->offset, query.error().message);
      } else {
        target->query = *std::move(query);
      }
      if (fields.Find(name) != nullptr) {
        source_.Add(path->offset,
                    "a state has \"" + std::string(name) + "\" or \"" + path_name + "\", not both");
      }
      continue;
    }
    *target = ReadComputed(state, fields, name, Json::Type::kString, 0, 0);
  }
}

void DefinitionReader::ReadParallel(State& state, Fields& fields, const Node& node) {
  ReadInputAndOutput(state, fields, true);
  ReadResult(state, fields);
  state.assign = ReadAssign(state, fields);
  ReadRetry(state, fields);
  ReadCatch(state, fields);
  const Node* branches = fields.Array("Branches");
  if (!fields.Has("Branches"))
    source_.Add(node.offset, "the Parallel \"" + state.name + "\" has no \"Branches\"");
  if (branches == nullptr) return;
  if (branches->items.empty())
    source_.Add(branches->offset, "\"Branches\" needs at least one branch");
  for (const Node& branch : branches->items) {
    if (!branch.is_object()) {
      source_.Add(branch.offset, "a branch is an object with \"StartAt\" and \"States\"");
      continue;
    }
    Fields branch_fields(branch, source_);
    state.branches.push_back(
        ReadMachine(branch, false, state.jsonata && jsonata_machine_, branch_fields));
    branch_fields.RejectOthers("a branch", "");
  }
}

}  // namespace muster::states
