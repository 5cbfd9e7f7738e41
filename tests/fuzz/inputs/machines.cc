#include "core/timestamp.h"
#include "fuzz/inputs/inputs.h"
#include "states/asl/definition.h"
#include "states/asl/query.h"

namespace muster::fuzz {
namespace {

using states::Query;
using states::Scope;

void ReadMachine(std::string_view bytes) {
  static_cast<void>(states::CheckDefinition(bytes, nullptr));
}

// Two parts: the path or intrinsic function, and the input.
void Evaluate(std::string_view bytes) {
  const auto [text, data] = TakePart(bytes);
  const auto query = Query::ParsePathOrIntrinsic(text);
  if (!query) return;
  Json input = Json::parse(data, nullptr, false);
  if (input.is_discarded()) input = Json{{"a", {1, 2.5, "x", {{"b", nullptr}}}}, {"n", -1}};
  const Json context{{"Execution", {{"Name", "e"}, {"Input", input}}}};
  const states::Variables variables{{"v", states::MakeValue(input)}};
  Scope scope;
  scope.input = &input;
  scope.variables = &variables;
  scope.context = [&](bool) -> const Json& { return context; };
  scope.execution_input = &input;
  scope.env = &RealEnv();
  static_cast<void>(query->FindNode(scope));
  static_cast<void>(query->Evaluate(scope, "value.$"));
}

void Write(std::string_view bytes) {
  const auto [text, data] = TakePart(bytes);
  const auto path = states::JsonPath::Parse(text);
  Json root = Json::parse(data, nullptr, false);
  if (!path || root.is_discarded() || !path->IsReference()) return;
  static_cast<void>(path->Put(root, "put"));
}

void ReadTime(std::string_view bytes) { static_cast<void>(ParseTimestamp(bytes)); }

constexpr Input kInputs[] = {
    {"machine", ReadMachine}, {"query", Evaluate}, {"result_path", Write}, {"timestamp", ReadTime}};

}  // namespace

std::span<const Input> MachineInputs() { return kInputs; }

}  // namespace muster::fuzz
