#include "states/run/interpreter_scope.h"

#include <charconv>
#include <cmath>

#include "core/timestamp.h"

namespace muster::states {

const Value& EmptyObject() {
  static const Value kEmpty = MakeValue(Json::object());
  return kEmpty;
}

std::string EventType(const State& state, std::string_view what) {
  return std::string(kStateTypes.NameOf(state.type)) + "State" + std::string(what);
}

Fallible<Value> PutAt(const JsonPath& path, const Value& input, const Json& value) {
  Json combined = *input;
  if (path.Put(combined, value)) return MakeValue(std::move(combined));
  return Unexpected(Failure{
      .error = "States.ResultPathMatchFailure",
      .cause = "Unable to apply ReferencePath " + path.text() + " to input " + ToJsonText(*input)});
}

const Json& Interpreter::ScopeHolder::Context(bool whole) {
  if (!context_) context_ = MakeContext();
  if (whole && !is_whole_) {
    if (scope_.execution_input != nullptr)
      (*context_)["Execution"]["Input"] = *scope_.execution_input;
    is_whole_ = true;
  }
  return *context_;
}

// Without the input of the execution, which may be large.
Json Interpreter::ScopeHolder::MakeContext() const {
  const ExecutionInfo& info = interpreter_.info_;
  const std::string machine =
      "arn:aws:states:us-east-1:111111111111:stateMachine:" + info.machine_name;
  Json context = {
      {"Execution",
       {{"Id",
         "arn:aws:states:us-east-1:111111111111:execution:" + info.machine_name + ":" + info.name},
        {"Input", Json::object()},
        {"Name", info.name},
        {"RoleArn", "arn:aws:iam::111111111111:role/muster"},
        {"StartTime", FormatTimestamp(info.start)},
        {"RedriveCount", info.redrive_count}}},
      {"StateMachine", {{"Id", machine}, {"Name", info.machine_name}}},
      {"State", {{"EnteredTime", FormatTimestamp(flow_.entered_time)}, {"Name", flow_.state}}}};
  const State& state = interpreter_.StateOf(flow_);
  if (state.type == StateType::kTask || state.type == StateType::kMap ||
      state.type == StateType::kParallel) {
    context["State"]["RetryCount"] = flow_.retry_count;
  }
  if (flow_.map_index) {
    Json& item = context["Map"]["Item"];
    item["Index"] = *flow_.map_index;
    item["Value"] = flow_.map_value ? *flow_.map_value : Json();
  }
  if (!token_.empty()) context["Task"] = {{"Token", token_}};
  return context;
}

Fallible<std::optional<int64_t>> Interpreter::Number(const Computed& computed,
                                                     const ScopeHolder& scope) const {
  if (computed.literal) return computed.literal->get<int64_t>();
  if (!computed.query) return std::optional<int64_t>{};
  if (computed.query->kind == Query::Kind::kJsonata) {
    STATES_ASSIGN(const Json value, computed.query->Evaluate(*scope, computed.field));
    if (value.is_number() && std::floor(value.get<double>()) == value.get<double>())
      return value.get<int64_t>();
    return Unexpected(
        Failure{.error = kQueryError,
                .cause = "The JSONata expression '" + computed.query->text +
                         "' specified for the field '" + computed.field +
                         "' returned an unexpected result type. Expected 'integer', but was '" +
                         std::string(JsonataType(value)) + "' for value: " + ToJsonText(value),
                .location = computed.field});
  }
  auto found = computed.query->Find(*scope);
  if (!found)
    return RuntimeFailure("Invalid path '" + computed.query->text + "' : " + found.error());
  if (found->is_string()) {
    // As on AWS, a number in quotes is accepted.
    const auto& text = found->get_ref<const std::string&>();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
  }
  if (!found->is_number_integer()) {
    const std::string shown = found->is_string() ? found->get<std::string>() : ToJsonText(*found);
    return RuntimeFailure("The " + computed.field + " field refers to value \"" + shown +
                          "\" which is not a valid integer: " + computed.query->text);
  }
  return found->get<int64_t>();
}

}  // namespace muster::states
