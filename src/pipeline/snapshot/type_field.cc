#include "pipeline/snapshot/type_field.h"

#include <optional>

#include "core/json.h"
#include "core/json_scan.h"

namespace muster::pipeline {
namespace {

bool HasMember(std::string_view object, std::string_view name) {
  JsonMembers members(object);
  std::optional<JsonMember> member = members.Next();
  while (member && !JsonKeyIs(member->key, name)) member = members.Next();
  return member.has_value();
}

}  // namespace

Status TypeField::Check(std::string_view name) {
  if (!name.empty() && name.front() != '_' && name.find('.') == std::string_view::npos) return {};
  return Error{Code::kInvalid, "type_field=" + std::string(name) + " is not a field",
               "name a field of the documents' top level that none of them has, such as "
               "type_field=kind"};
}

void TypeField::Apply(std::string_view type, Document& document) {
  // As in _uid: a type has no '#', so no two documents get the same id.
  id_.assign(type).append("#").append(document.id);
  document.id = id_;
  const size_t brace = document.body.find('{');
  if (document.deleted || !document.defect.empty() || brace == std::string_view::npos) return;
  const std::string_view object = document.body.substr(brace);
  if (HasMember(object, name_)) {
    defect_ = "it has a field '" + name_ + "' already: choose another with type_field=NAME";
    document.defect = defect_;
    return;
  }
  body_ = "{";
  AppendJsonString(body_, name_);
  body_ += ':';
  AppendJsonString(body_, type);
  const size_t next = SkipJsonSpace(object, 1);
  if (next < object.size() && object[next] != '}') body_ += ',';
  body_ += object.substr(1);
  document.body = body_;
}

}  // namespace muster::pipeline
