#include "states/asl/query.h"

#include <cctype>

namespace muster::states {
namespace {

constexpr char kOpen[] = "{%";
constexpr char kClose[] = "%}";
constexpr std::string_view kExecution = "$.Execution";
constexpr std::string_view kExecutionInput = "$.Execution.Input";

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsNamePart(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// What follows "$.Execution.Input"; none: another path.
std::optional<std::string> InExecutionInput(std::string_view path) {
  if (!path.starts_with(kExecutionInput)) return std::nullopt;
  const std::string_view rest = path.substr(kExecutionInput.size());
  if (!rest.empty() && rest[0] != '.' && rest[0] != '[') return std::nullopt;
  return std::string(rest);
}

// Whether a path into the context never touches the execution's input, as "$.Map.Item.Value" and
// "$.Execution.Name" do, but not "$.Execution", "$" or "$['Execution']".
bool IsBesideExecutionInput(std::string_view path) {
  if (path.size() < 3 || !path.starts_with("$.") || !IsNameStart(path[2])) return false;
  if (!path.starts_with(kExecution)) return true;
  const std::string_view rest = path.substr(kExecution.size());
  return rest.size() > 1 && rest[0] == '.' && IsNameStart(rest[1]) && !rest.starts_with(".Input");
}

// The members of $states that a JSONata expression may read.
struct UsedStates {
  bool input = false;
  bool result = false;
  bool error_output = false;
  bool context = false;
  bool execution_input = false;  // in the context

  static UsedStates By(std::string_view text) {
    constexpr UsedStates kAll{true, true, true, true, true};
    // "%" leads to the parent of what was named.
    if (text.find('%') != std::string_view::npos) return kAll;
    UsedStates used;
    constexpr std::string_view kStates = "$states";
    constexpr std::string_view kContext = ".context";
    for (size_t at = text.find(kStates); at != std::string_view::npos;
         at = text.find(kStates, at + 1)) {
      const std::string_view rest = text.substr(at + kStates.size());
      if (rest.starts_with(".input")) {
        used.input = true;
      } else if (rest.starts_with(".result")) {
        used.result = true;
      } else if (rest.starts_with(".errorOutput")) {
        used.error_output = true;
      } else if (rest.starts_with(kContext)) {
        used.context = true;
        used.execution_input |=
            !IsBesideExecutionInput("$" + std::string(rest.substr(kContext.size())));
      } else {
        return kAll;
      }
    }
    return used;
  }
};

}  // namespace

Result<Query> Query::ParsePath(std::string_view text) {
  Query query;
  query.text = std::string(text);
  std::string path_text(text);
  if (text.starts_with("$$")) {
    query.kind = Kind::kContext;
    path_text = std::string(text.substr(1));
  } else if (text.size() > 1 && text[0] == '$' && IsNameStart(text[1])) {
    query.kind = Kind::kVariable;
    size_t end = 1;
    while (end < text.size() && IsNamePart(text[end])) ++end;
    query.variable = std::string(text.substr(1, end - 1));
    path_text = "$" + std::string(text.substr(end));
  }
  auto path = JsonPath::Parse(path_text);
  if (!path) return path.error();
  query.path = *std::move(path);
  if (query.kind == Kind::kContext) {
    query.beside_execution_input = IsBesideExecutionInput(path_text);
    if (const auto rest = InExecutionInput(path_text)) {
      if (auto inside = JsonPath::Parse("$" + *rest)) query.in_execution_input = *std::move(inside);
    }
  }
  return query;
}

Result<Query> Query::ParsePathOrIntrinsic(std::string_view text) {
  if (text.starts_with("$")) return ParsePath(text);
  Query query;
  query.kind = Kind::kIntrinsic;
  query.text = std::string(text);
  MUSTER_ASSIGN(query.intrinsic, Intrinsic::Parse(text));
  return query;
}

bool Query::LooksLikeJsonata(std::string_view text) {
  return text.size() >= 4 && text.starts_with(kOpen) && text.ends_with(kClose);
}

Result<Query> Query::ParseJsonata(std::string_view text) {
  if (!LooksLikeJsonata(text)) {
    return Error{Code::kInvalid, "not a JSONata expression: " + std::string(text),
                 "write it as \"{% … %}\""};
  }
  std::string_view inner = text.substr(2, text.size() - 4);
  while (!inner.empty() && std::isspace(static_cast<unsigned char>(inner.front())))
    inner.remove_prefix(1);
  while (!inner.empty() && std::isspace(static_cast<unsigned char>(inner.back())))
    inner.remove_suffix(1);
  Query query;
  query.kind = Kind::kJsonata;
  query.text = std::string(inner);
  return query;
}

const Json* Query::Root(const Scope& scope) const {
  switch (kind) {
    case Kind::kInput:
      return scope.input;
    case Kind::kContext:
      return &scope.context(true);
    case Kind::kVariable: {
      auto found = scope.variables->find(variable);
      return found == scope.variables->end() ? nullptr : found->second.get();
    }
    default:
      return nullptr;
  }
}

const Json* Query::FindNode(const Scope& scope) const {
  if (!path.definite()) return nullptr;
  const Json* node = nullptr;
  if (beside_execution_input) node = path.FindNode(scope.context(false));
  if (in_execution_input && scope.execution_input != nullptr)
    node = in_execution_input->FindNode(*scope.execution_input);
  if (node != nullptr) return node;
  const Json* root = Root(scope);
  return root == nullptr ? nullptr : path.FindNode(*root);
}

Expected<Json, std::string> Query::Find(const Scope& scope) const {
  if (const Json* node = FindNode(scope)) return *node;
  const Json* root = Root(scope);
  if (root == nullptr) return Unexpected("the variable '$" + variable + "' is not defined");
  return path.Find(*root);
}

Fallible<Json> Query::Evaluate(const Scope& scope, std::string_view field) const {
  if (kind == Kind::kIntrinsic) return intrinsic->Evaluate(scope);
  if (kind == Kind::kJsonata) return EvaluateJsonata(scope, field);
  if (const Json* node = FindNode(scope)) return *node;
  const Json* root = Root(scope);
  if (root == nullptr)
    return RuntimeFailure("The variable '$" + variable + "' specified for the field '" +
                          std::string(field) + "' is not defined");
  auto found = path.Find(*root);
  if (found) return *std::move(found);
  return RuntimeFailure("The JSONPath '" + text + "' specified for the field '" +
                        std::string(field) + "' could not be found in the input '" +
                        ToJsonText(*root) + "'");
}

Fallible<Json> Query::EvaluateJsonata(const Scope& scope, std::string_view field) const {
  const auto fail = [&](const std::string& what) -> Unexpected<Failure> {
    return Unexpected(Failure{.error = kQueryError,
                              .cause = "The JSONata expression '" + text +
                                       "' specified for the field '" + std::string(field) + "' " +
                                       what,
                              .location = std::string(field)});
  };
  if (scope.jsonata == nullptr) return fail("cannot be evaluated: this engine has no JSONata.");
  // Binding a large value costs more than evaluating most expressions.
  const UsedStates used = UsedStates::By(text);
  Json states = Json::object();
  if (used.input) states["input"] = *scope.input;
  if (used.result && scope.result != nullptr) states["result"] = *scope.result;
  if (used.error_output && scope.error_output != nullptr)
    states["errorOutput"] = *scope.error_output;
  if (used.context) states["context"] = scope.context(used.execution_input);
  JsonataEngine::Bindings bindings;
  bindings.emplace_back("states", &states);
  for (const auto& [name, value] : *scope.variables) bindings.emplace_back(name, value.get());
  auto value = scope.jsonata->Evaluate(text, bindings);
  if (!value) return fail("threw an error during evaluation. " + value.error());
  if (!*value) return fail("returned nothing (undefined).");
  return **std::move(value);
}

std::string_view JsonataType(const Json& value) {
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  return "number";
}

}  // namespace muster::states
