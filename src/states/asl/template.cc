#include "states/asl/template.h"

#include <algorithm>
#include <cctype>

#include "core/secrets.h"

namespace muster::states {
namespace {

void AddPieces(std::vector<std::string> pieces, const std::string& pointer,
               SecretPieces& references) {
  std::string text;
  for (const std::string& piece : pieces) text += piece + '\n';
  if (CountSecretReferences(text) > 0) references[pointer] = std::move(pieces);
}

void AddLiteralReferences(const Json& literal, const std::string& pointer,
                          SecretPieces& references) {
  if (literal.is_string()) AddPieces({literal.get<std::string>()}, pointer, references);
  if (literal.is_object()) {
    for (const auto& [name, member] : literal.items())
      AddLiteralReferences(member, JsonPointerTo(pointer, name), references);
  }
  if (literal.is_array()) {
    for (size_t i = 0; i < literal.size(); ++i)
      AddLiteralReferences(literal[i], JsonPointerTo(pointer, std::to_string(i)), references);
  }
}

}  // namespace

Template Template::ReadJsonPath(const Node& node, Source& source) {
  Template result;
  if (node.is_array()) {
    result.kind_ = Kind::kArray;
    for (const Node& item : node.items) result.items_.push_back(ReadJsonPath(item, source));
  } else if (node.is_object()) {
    result.kind_ = Kind::kObject;
    for (const Node::Member& member : node.members) {
      if (!member.key.ends_with(".$")) {
        result.members_.emplace_back(member.key, ReadJsonPath(member.value, source));
        continue;
      }
      const std::string name = member.key.substr(0, member.key.size() - 2);
      if (node.Find(name) != nullptr) {
        source.Add(member.key_offset, "\"" + name + "\" and \"" + member.key +
                                          "\" would both become \"" + name + "\"");
      }
      Template computed;
      computed.kind_ = Kind::kQuery;
      computed.field_ = member.key;
      if (!member.value.is_string()) {
        source.Add(member.value.offset, "the value of \"" + member.key +
                                            "\" must be a path or an intrinsic function in quotes");
        continue;
      }
      auto query = Query::ParsePathOrIntrinsic(member.value.text());
      if (!query) {
        source.Add(member.value.offset, query.error().message);
        continue;
      }
      computed.query_ = *std::move(query);
      result.members_.emplace_back(name, std::move(computed));
    }
  }
  const bool constant =
      std::all_of(result.members_.begin(), result.members_.end(),
                  [](const auto& member) { return member.second.kind_ == Kind::kLiteral; }) &&
      std::all_of(result.items_.begin(), result.items_.end(),
                  [](const Template& item) { return item.kind_ == Kind::kLiteral; });
  if (!constant) return result;
  const bool object = result.kind_ == Kind::kObject;
  Template literal;
  // The literal lacks rejected members: such a definition never runs.
  literal.literal_ = MakeValue(node.ToJson());
  if (object) literal.members_ = std::move(result.members_);
  return literal;
}

std::optional<Query> ReadJsonataText(const Node& node, Source& source, JsonataEngine* jsonata) {
  const std::string& text = node.text();
  if (!Query::LooksLikeJsonata(text)) {
    source.Add(node.offset, "a JSONata expression is written \"{% … %}\", not \"" + text + "\"");
    return {};
  }
  auto query = Query::ParseJsonata(text);
  if (!query) {
    source.Add(node.offset, query.error().message);
    return {};
  }
  const bool spaced = text.starts_with("{% ") && text.ends_with(" %}") && text.size() > 6 &&
                      !std::isspace(static_cast<unsigned char>(text[3]));
  if (!spaced) {
    source.Add(node.offset,
               "write a JSONata expression as \"{% … %}\": with one space, and no line end, behind "
               "\"{%\", and a space before \"%}\"",
               false);
  }
  if (jsonata != nullptr) {
    if (auto checked = jsonata->Check(query->text); !checked) {
      source.Add(node.offset, "bad JSONata '" + query->text + "': " + checked.error().message);
      return {};
    }
  }
  return *std::move(query);
}

Template Template::ReadJsonata(const Node& node, const std::string& field, Source& source,
                               JsonataEngine* jsonata) {
  Template result;
  result.field_ = field;
  if (node.is_array()) {
    result.kind_ = Kind::kArray;
    for (size_t i = 0; i < node.items.size(); ++i) {
      result.items_.push_back(
          ReadJsonata(node.items[i], field + "/" + std::to_string(i), source, jsonata));
    }
    return result;
  }
  if (node.is_object()) {
    result.kind_ = Kind::kObject;
    for (const Node::Member& member : node.members) {
      result.members_.emplace_back(
          member.key, ReadJsonata(member.value, field + "/" + member.key, source, jsonata));
    }
    return result;
  }
  if (node.is_string() && (node.text().starts_with("{%") || node.text().ends_with("%}"))) {
    result.kind_ = Kind::kQuery;
    if (auto query = ReadJsonataText(node, source, jsonata)) result.query_ = *std::move(query);
    return result;
  }
  result.literal_ = MakeValue(node.scalar);
  return result;
}

Fallible<Value> Template::Evaluate(const Scope& scope) const {
  if (kind_ == Kind::kLiteral) return literal_;
  STATES_ASSIGN(Json built, Build(scope));
  return MakeValue(std::move(built));
}

Fallible<Json> Template::Build(const Scope& scope) const {
  switch (kind_) {
    case Kind::kLiteral:
      return *literal_;
    case Kind::kQuery:
      return query_.Evaluate(scope, field_);
    case Kind::kObject: {
      Json object = Json::object();
      for (const auto& [name, member] : members_) {
        STATES_ASSIGN(Json value, member.Build(scope));
        object[name] = std::move(value);
      }
      return object;
    }
    case Kind::kArray: {
      Json array = Json::array();
      for (const Template& item : items_) {
        STATES_ASSIGN(Json value, item.Build(scope));
        array.push_back(std::move(value));
      }
      return array;
    }
  }
  return Json();
}

Fallible<Variables> Template::EvaluateMembers(const Scope& scope) const {
  Variables variables;
  for (const auto& [name, member] : members_) {
    STATES_ASSIGN(variables[name], member.Evaluate(scope));
  }
  return variables;
}

SecretPieces Template::SecretReferences() const {
  SecretPieces references;
  AddReferences("", references);
  return references;
}

void Template::AddReferences(const std::string& pointer, SecretPieces& references) const {
  switch (kind_) {
    case Kind::kLiteral:
      return AddLiteralReferences(*literal_, pointer, references);
    case Kind::kQuery:
      if (query_.intrinsic) AddPieces(query_.intrinsic->LiteralPieces(), pointer, references);
      return;
    case Kind::kObject:
      for (const auto& [name, member] : members_)
        member.AddReferences(JsonPointerTo(pointer, name), references);
      return;
    case Kind::kArray:
      for (size_t i = 0; i < items_.size(); ++i)
        items_[i].AddReferences(JsonPointerTo(pointer, std::to_string(i)), references);
      return;
  }
}

std::vector<std::string> Template::MemberNames() const {
  std::vector<std::string> names;
  for (const auto& [name, member] : members_) names.push_back(name);
  return names;
}

}  // namespace muster::states
