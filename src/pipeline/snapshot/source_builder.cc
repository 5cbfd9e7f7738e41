#include "pipeline/snapshot/source_builder.h"

#include <algorithm>
#include <set>

#include "core/json_scan.h"
#include "pipeline/snapshot/rebuilt_value.h"

namespace muster::pipeline {

std::vector<lucene::WantedField> SourceBuilder::Wanted() const {
  std::vector<lucene::WantedField> wanted;
  for (const RebuiltField& field : plan_->fields) wanted.push_back({field.path, field.is_stored});
  return wanted;
}

Result<std::string_view> SourceBuilder::Build(const Values& values, std::string_view stored) {
  text_.clear();
  const size_t brace = stored.find('{');
  const Status built = brace == std::string_view::npos
                           ? AppendObject(plan_->root, values, /*is_single=*/true)
                           : Merge(plan_->root, values, stored.substr(brace));
  if (!built) return built.error();
  return std::string_view(text_);
}

bool SourceBuilder::HasValues(const RebuiltMember& member, const Values& values) const {
  if (member.field) return !values[*member.field].empty();
  return std::any_of(member.members.begin(), member.members.end(),
                     [&](const RebuiltMember& inner) { return HasValues(inner, values); });
}

void SourceBuilder::Comma() {
  if (text_.back() != '{') text_ += ',';
}

Status SourceBuilder::Merge(const RebuiltMember& object, const Values& values,
                            std::string_view stored) {
  text_ += '{';
  std::set<const RebuiltMember*> done;
  JsonMembers members(stored);
  while (const auto member = members.Next()) {
    Comma();
    text_.append("\"").append(member->key).append("\":");
    const auto ours =
        std::find_if(object.members.begin(), object.members.end(),
                     [&](const RebuiltMember& it) { return JsonKeyIs(member->key, it.name); });
    const bool is_ours = ours != object.members.end();
    if (is_ours) done.insert(&*ours);
    if (!is_ours || ours->field || !HasValues(*ours, values)) {
      text_ += member->value;
    } else if (member->value.starts_with('{')) {
      MUSTER_TRY(Merge(*ours, values, member->value));
    } else {
      return Error{Code::kIncompatible, "'" + ours->name + "' is an array of objects"};
    }
  }
  for (const RebuiltMember& member : object.members) {
    if (!done.contains(&member)) MUSTER_TRY(AppendMember(member, values, /*is_single=*/true));
  }
  text_ += '}';
  return {};
}

Status SourceBuilder::AppendObject(const RebuiltMember& object, const Values& values,
                                   bool is_single) {
  text_ += '{';
  for (const RebuiltMember& member : object.members) {
    MUSTER_TRY(AppendMember(member, values, is_single));
  }
  text_ += '}';
  return {};
}

Status SourceBuilder::AppendMember(const RebuiltMember& member, const Values& values,
                                   bool is_single) {
  if (!HasValues(member, values)) return {};
  Comma();
  AppendJsonString(text_, member.name);
  text_ += ':';
  if (!member.field) return AppendObject(member, values, /*is_single=*/false);
  const RebuiltField& field = plan_->fields[*member.field];
  const std::vector<lucene::IndexedValue>& all = values[*member.field];
  if (all.size() > 1 && !is_single) {
    // Which value was in which of the objects is not in the files.
    return Error{Code::kIncompatible, "'" + field.path +
                                          "' has several values: the object that it is in may "
                                          "have been an array of objects"};
  }
  if (all.size() > 1) text_ += '[';
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text_ += ',';
    const Status written = AppendRebuiltValue(field, all[i], text_);
    if (!written) return written.error().Within("'" + field.path + "'");
  }
  if (all.size() > 1) text_ += ']';
  return {};
}

}  // namespace muster::pipeline
