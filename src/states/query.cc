#include "states/query.h"

#include <cctype>

namespace muster::states {
namespace {

constexpr char kOpen[] = "{%";
constexpr char kClose[] = "%}";

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsNamePart(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Whether an expression uses $states for anything but its input, result and error.
bool MayUseContext(std::string_view text) {
  constexpr std::string_view kStates = "$states";
  for (size_t at = text.find(kStates); at != std::string_view::npos;
       at = text.find(kStates, at + 1)) {
    const std::string_view rest = text.substr(at + kStates.size());
    if (!rest.starts_with(".input") && !rest.starts_with(".result") &&
        !rest.starts_with(".errorOutput"))
      return true;
  }
  return false;
}

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
      return &scope.context();
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
  const Json* root = Root(scope);
  return root == nullptr ? nullptr : path.FindNode(*root);
}

tl::expected<Json, std::string> Query::Find(const Scope& scope) const {
  const Json* root = Root(scope);
  if (root == nullptr) return tl::unexpected("the variable '$" + variable + "' is not defined");
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
  const auto fail = [&](const std::string& what) -> tl::unexpected<Failure> {
    return tl::unexpected(Failure{.error = kQueryError,
                                  .cause = "The JSONata expression '" + text +
                                           "' specified for the field '" + std::string(field) +
                                           "' " + what,
                                  .location = std::string(field)});
  };
  if (scope.jsonata == nullptr) return fail("cannot be evaluated: this engine has no JSONata.");
  Json states = Json::object();
  states["input"] = *scope.input;
  if (scope.result != nullptr) states["result"] = *scope.result;
  if (scope.error_output != nullptr) states["errorOutput"] = *scope.error_output;
  // Making the context costs more than most expressions: only for those that may look at it.
  if (MayUseContext(text)) states["context"] = scope.context();
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
