#include <algorithm>
#include <set>
#include <utility>

#include "core/json_fields.h"
#include "core/regex.h"
#include "metadata/job.h"
#include "metadata/settings.h"

namespace muster::metadata {
namespace {

constexpr const char* kLifecycle = "index.lifecycle.name";
constexpr const char* kUnrelated = "no selected index needs it";

std::vector<std::string> TextsIn(const Json& json, const char* name) {
  std::vector<std::string> texts;
  const Json& value = MemberIn(json, name);
  if (value.is_string()) texts.push_back(value.get<std::string>());
  if (!value.is_array()) return texts;
  for (const Json& one : value) {
    if (one.is_string()) texts.push_back(one.get<std::string>());
  }
  return texts;
}

// Of a template; before Elasticsearch 6 there was only one, called "template".
std::vector<std::string> PatternsOf(const Object& object) {
  std::vector<std::string> patterns = TextsIn(object.body, "index_patterns");
  if (object.kind == Kind::kTemplate && patterns.empty()) {
    patterns = TextsIn(object.body, "template");
  }
  return patterns;
}

bool IsTemplate(Kind kind) { return kind == Kind::kTemplate || kind == Kind::kIndexTemplate; }

bool MatchesAny(const Object& object, const std::vector<std::string>& indices) {
  for (const std::string& text : PatternsOf(object)) {
    const auto pattern = Pattern::Parse(text);
    if (!pattern) return true;
    if (std::any_of(indices.begin(), indices.end(),
                    [&](const std::string& index) { return pattern->Matches(index); })) {
      return true;
    }
  }
  return false;
}

std::string PolicyOf(const Object& object) {
  const Json settings = FlatSettings(
      MemberIn(std::as_const(ContentOf<const Json>(object.kind, object.body)), "settings"));
  return TextIn(settings, kLifecycle);
}

// A policy applies to the indices of the templates that name it.
void AddPatterns(std::vector<SourceObject>& objects) {
  for (SourceObject& policy : objects) {
    if (policy.object.kind != Kind::kPolicy) continue;
    Json patterns = Json::array();
    for (const SourceObject& other : objects) {
      if (!IsTemplate(other.object.kind) || PolicyOf(other.object) != policy.object.name) continue;
      for (const std::string& pattern : PatternsOf(other.object)) patterns.push_back(pattern);
    }
    if (!patterns.empty()) policy.object.body["index_patterns"] = std::move(patterns);
  }
}

}  // namespace

std::vector<SourceObject> GlobalObjects(const Json& global, bool pipelines) {
  static constexpr std::pair<const char*, Kind> kMembers[] = {
      {"policies", Kind::kPolicy},
      {"pipelines", Kind::kPipeline},
      {"component_templates", Kind::kComponentTemplate},
      {"index_templates", Kind::kIndexTemplate},
      {"templates", Kind::kTemplate},
      {"data_streams", Kind::kDataStream},
  };
  std::vector<SourceObject> objects;
  for (const auto& [member, kind] : kMembers) {
    if (kind == Kind::kPipeline && !pipelines) continue;
    for (const auto& [name, body] : MemberIn(global, member).items()) {
      if (body.is_object()) objects.push_back({{kind, name, body}});
    }
    const std::string unreadable = TextIn(MemberIn(global, "unreadable"), member);
    if (!unreadable.empty()) objects.push_back({{kind, "*"}, unreadable, true});
  }
  for (const std::string& name : TextsIn(global, "hidden")) {
    objects.push_back({{Kind::kIndex, name}, "it is hidden: name it in the source's URL"});
  }
  for (const std::string& name : TextsIn(global, "stores")) {
    objects.push_back({{Kind::kIndex, name}, "it is a Muster store"});
  }
  AddPatterns(objects);
  return objects;
}

void LeaveOutUnrelated(std::vector<SourceObject>& objects) {
  std::vector<std::string> indices;
  for (const SourceObject& one : objects) {
    const Kind kind = one.object.kind;
    if (kind == Kind::kIndex || kind == Kind::kDataStream) indices.push_back(one.object.name);
  }
  std::set<std::string> components;
  std::set<std::string> policies;
  const auto use = [&](const Object& object) {
    for (const std::string& name : TextsIn(object.body, "composed_of")) components.insert(name);
    policies.insert(PolicyOf(object));
  };
  const auto leave_out = [](SourceObject& one) {
    if (one.is_unknown) return;
    one.object.body = Json::object();
    one.refusal = kUnrelated;
  };
  for (SourceObject& one : objects) {
    const bool is_index = one.object.kind == Kind::kIndex;
    if (is_index || (IsTemplate(one.object.kind) && MatchesAny(one.object, indices))) {
      use(one.object);
    } else if (IsTemplate(one.object.kind)) {
      leave_out(one);
    }
  }
  for (SourceObject& one : objects) {
    if (one.object.kind != Kind::kComponentTemplate) continue;
    components.contains(one.object.name) ? use(one.object) : leave_out(one);
  }
  for (SourceObject& one : objects) {
    if (one.object.kind == Kind::kPolicy && !policies.contains(one.object.name)) leave_out(one);
  }
}

}  // namespace muster::metadata
