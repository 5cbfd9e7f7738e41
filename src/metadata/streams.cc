#include "metadata/streams.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/json_fields.h"
#include "core/regex.h"
#include "metadata/created_index.h"

namespace muster::metadata {
namespace {

// Above the priorities of built-in templates.
constexpr int kOwnPriority = 1'000;

bool Matches(const Json& body, const std::string& stream) {
  for (const Json& text : MemberIn(body, "index_patterns")) {
    const auto pattern = Pattern::Parse(text.is_string() ? text.get<std::string>() : "");
    if (pattern && pattern->Matches(stream)) return true;
  }
  return false;
}

// The template that a cluster creates a data stream of this name by; empty: none.
std::string TemplateOf(const Json& templates, const std::string& stream) {
  std::string best;
  int64_t priority = -1;
  for (const auto& [name, body] : templates.items()) {
    if (!MemberIn(body, "data_stream").is_object() || !Matches(body, stream)) continue;
    if (NumberIn(body, "priority") <= priority) continue;
    priority = NumberIn(body, "priority");
    best = name;
  }
  return best;
}

// A template for one stream alone, by its newest index.
Verdict OwnTemplate(const RuleSet& rules, const Versions& versions, const std::string& stream,
                    const Json& metadata) {
  Verdict verdict = rules.Apply({Kind::kIndex, stream, metadata}, versions, {});
  if (!verdict.IsKept()) return verdict;
  Json content = std::move(verdict.body);
  content.erase("aliases");
  if (content.contains("settings")) content["settings"].erase("index.hidden");
  verdict.body = Json{{"index_patterns", Json::array({stream})},
                      {"priority", kOwnPriority},
                      {"data_stream", Json::object()},
                      {"template", std::move(content)}};
  return verdict;
}

class Creation {
 public:
  Creation(Target& target, const RuleSet& rules, const Versions& versions, bool evaluate)
      : target_(target), rules_(rules), versions_(versions), evaluate_(evaluate) {}

  // The templates that the source's stream has. Under another name they would not apply.
  Status AddTemplates(const std::string& stream, const Json& metadata) {
    if (TemplateOf(MemberIn(metadata, "index_templates"), stream).empty()) return {};
    for (const auto& [member, kind] : {std::pair{"component_templates", Kind::kComponentTemplate},
                                       std::pair{"index_templates", Kind::kIndexTemplate}}) {
      for (const auto& [name, body] : MemberIn(metadata, member).items()) {
        const Verdict verdict = rules_.Apply({kind, name, body}, versions_, {});
        if (verdict.outcome == Outcome::kLeftOut) continue;
        if (!verdict.IsKept()) return Error{Code::kInvalid, verdict.Detail()};
        MUSTER_TRY(Add(kind, verdict.name, verdict.body));
        has_template_ |= kind == Kind::kIndexTemplate;
      }
    }
    return {};
  }

  // One of the target that is for data streams also serves.
  Status AddOwn(const std::string& stream, const Json& metadata) {
    if (has_template_) return {};
    MUSTER_ASSIGN(const bool serves, target_.HasStreamTemplate(stream));
    if (serves) return {};
    const Verdict verdict = OwnTemplate(rules_, versions_, stream, metadata);
    if (!verdict.IsKept()) return Error{Code::kInvalid, verdict.Detail()};
    return Add(Kind::kIndexTemplate, stream, verdict.body);
  }

  // What the target's templates add to its indices must not change its documents.
  Status Check(const std::string& stream, const Json& metadata) {
    const Verdict wanted = rules_.Apply({Kind::kIndex, stream, metadata}, versions_, {});
    if (!wanted.IsKept()) return Error{Code::kInvalid, wanted.Detail()};
    MUSTER_ASSIGN(const auto harmful, HarmfulTemplates(target_, stream, wanted.body));
    return CheckTemplates(stream, harmful);
  }

  Status Create(const std::string& stream) {
    made_.push_back("create data stream " + stream);
    if (evaluate_) return {};
    MUSTER_TRY(target_.Create(Kind::kDataStream, stream, {}));
    return {};
  }

  std::vector<std::string> TakeMade() { return std::move(made_); }

 private:
  Status Add(Kind kind, const std::string& name, const Json& body) {
    MUSTER_ASSIGN(const auto found, target_.Find(kind, name));
    if (found) return {};
    const std::string words =
        kind == Kind::kIndexTemplate ? "index template " : "component template ";
    made_.push_back("create " + words + name + " with " + ToJsonText(body));
    if (evaluate_) return {};
    const auto created = target_.Create(kind, name, body);
    // Created concurrently: fine.
    if (!created && created.error().code != Code::kConflict) return created.error();
    return {};
  }

  Target& target_;
  const RuleSet& rules_;
  const Versions& versions_;
  const bool evaluate_;
  bool has_template_ = false;
  std::vector<std::string> made_;
};

}  // namespace

void AddStreamTemplates(const Json& global, const std::string& stream, Json& metadata) {
  metadata["data_stream"] = stream;
  const Json& templates = MemberIn(global, "index_templates");
  const std::string name = TemplateOf(templates, stream);
  if (name.empty()) return;
  metadata["index_templates"][name] = templates[name];
  const Json& components = MemberIn(global, "component_templates");
  for (const Json& one : MemberIn(templates[name], "composed_of")) {
    const std::string component = one.is_string() ? one.get<std::string>() : "";
    if (!components.contains(component)) continue;
    metadata["component_templates"][component] = components[component];
  }
}

bool IsStream(const Json& metadata) {
  return metadata.is_object() && metadata.contains("data_stream");
}

Result<std::vector<std::string>> CreateStream(Target& target, const RuleSet& rules,
                                              const Versions& versions, const std::string& name,
                                              const Json& metadata, bool evaluate) {
  Creation creation(target, rules, versions, evaluate);
  MUSTER_TRY(creation.AddTemplates(name, metadata));
  MUSTER_TRY(creation.AddOwn(name, metadata));
  if (!evaluate || !metadata.contains("index_templates")) {
    MUSTER_TRY(creation.Check(name, metadata));
  }
  MUSTER_TRY(creation.Create(name));
  return creation.TakeMade();
}

}  // namespace muster::metadata
