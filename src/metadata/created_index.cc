#include "metadata/created_index.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/json_fields.h"
#include "metadata/compare.h"
#include "metadata/settings.h"

namespace muster::metadata {
namespace {

constexpr size_t kMaxNamed = 5;

struct Setting {
  std::string_view name;
  std::string_view harmless;  // this value only
};
constexpr std::array<Setting, 5> kSettings = {{
    {"index.default_pipeline", "_none"},  // other programs write to the index, too
    {"index.final_pipeline", "_none"},
    {"index.mode", "standard"},  // the others rebuild _source from fields
    {"index.mapping.source.mode", "stored"},
    {"index.derived_source.enabled", "false"},
}};

bool HasPart(std::string_view path, std::string_view part, std::string_view name) {
  return path.starts_with(part) && path.ends_with(name) &&
         (path.size() == part.size() + name.size() || path[path.size() - name.size() - 1] == '.');
}

bool IsHarmful(const Member& one) {
  const std::string_view path = one.path;
  constexpr std::string_view kSettingsPart = "settings ";
  if (path.starts_with(kSettingsPart)) {
    const std::string_view name = path.substr(kSettingsPart.size());
    return std::any_of(kSettings.begin(), kSettings.end(), [&](const Setting& setting) {
      return name == setting.name && one.value != setting.harmless;
    });
  }
  if (path.starts_with("mappings _source.")) return one.value != "true" && one.value != "stored";
  if (path == "mappings _routing.required") return one.value == "true";
  if (HasPart(path, "mappings ", "dynamic")) return one.value != "true";
  return HasPart(path, "aliases ", "is_write_index") && one.value == "true";
}

std::string TextOf(const Member& one) { return one.path + ": " + one.value; }

// The form that the rules produce: settings by their full names; lists even where a single value is
// allowed.
Json Plain(const Json& index) {
  Json plain{{"settings", FlatSettings(MemberIn(index, "settings"))},
             {"mappings", MemberIn(index, "mappings")},
             {"aliases", MemberIn(index, "aliases")}};
  if (!plain["mappings"].is_object() || !MemberIn(plain["mappings"], "_source").is_object()) {
    return plain;
  }
  for (const char* list : {"excludes", "includes"}) {
    Json& source = plain["mappings"]["_source"];
    if (source.contains(list) && source[list].is_string()) {
      source[list] = Json::array({source[list]});
    }
  }
  return plain;
}

Error Harm(const std::string& name, const std::vector<std::string>& harmful) {
  return Error{Code::kInvalid,
               "templates of the target give index " + name +
                   " what the source's index does not have: " + Joined(harmful),
               "documents would lose fields, be changed or be refused: change or remove the "
               "templates that match it (GET /_index_template, /_template) until it is created. "
               "If it is meant to be so, create it yourself and migrate with --documents-only"};
}

}  // namespace

std::string Joined(const std::vector<std::string>& texts) {
  std::string all;
  for (size_t i = 0; i < texts.size() && i < kMaxNamed; ++i) {
    all += (all.empty() ? "" : "; ") + texts[i];
  }
  if (texts.size() > kMaxNamed)
    all += "; and " + std::to_string(texts.size() - kMaxNamed) + " more";
  return all;
}

IndexAdditions AdditionsTo(const Json& wanted, const Json& found, const RuleSet& rules,
                           const ClusterVersion& version) {
  IndexAdditions additions;
  for (const Member& one : Additions(Kind::kIndex, Plain(wanted), Plain(found))) {
    if (IsHarmful(one)) additions.harmful.push_back(TextOf(one));
  }
  const Verdict own = rules.Apply({Kind::kIndex, "", found}, {version, version}, {});
  if (!own.IsKept()) return additions;
  for (const Member& one : Additions(Kind::kIndex, wanted, own.body)) {
    if (!IsHarmful(one)) additions.others.push_back(TextOf(one));
  }
  return additions;
}

Status CheckTemplates(const std::string& name, const std::vector<std::string>& harmful) {
  return harmful.empty() ? Status() : Harm(name, harmful);
}

Result<std::vector<std::string>> HarmfulTemplates(Target& target, const std::string& name,
                                                  const Json& body) {
  std::vector<std::string> harmful;
  MUSTER_ASSIGN(const Json given, target.FromTemplates(name));
  if (!given.is_object()) return harmful;
  const Json wanted = Plain(body);
  for (const Member& one : Additions(Kind::kIndex, wanted, Plain(given))) {
    // Members of the request take precedence. Lists, which older templates merge, are checked
    // afterwards.
    if (!IsHarmful(one) || one.is_other) continue;
    constexpr std::string_view kAliasPart = "aliases ";
    const bool is_of_alias =
        one.path.starts_with(kAliasPart) &&
        MemberIn(wanted, "aliases")
            .contains(one.path.substr(kAliasPart.size(), one.path.rfind('.') - kAliasPart.size()));
    if (!is_of_alias) harmful.push_back(TextOf(one));
  }
  return harmful;
}

Result<CreatedIndex> CreateIndex(Target& target, const RuleSet& rules, const std::string& name,
                                 const Json& body) {
  MUSTER_ASSIGN(const auto expected, HarmfulTemplates(target, name, body));
  MUSTER_TRY(CheckTemplates(name, expected));
  CreatedIndex created;
  MUSTER_ASSIGN(created.dropped, target.Create(Kind::kIndex, name, body));
  // Catches templates that merge in unforeseen ways, or were added just now.
  const auto found = target.Find(Kind::kIndex, name);
  if (!found && !IsRefusal(found.error())) return found.error();
  if (!found || !*found) return created;
  IndexAdditions additions = AdditionsTo(body, **found, rules, target.version());
  if (additions.harmful.empty()) {
    created.added = std::move(additions.others);
    return created;
  }
  Error error = Harm(name, additions.harmful);
  if (const Status undone = target.Undo(name); !undone) {
    error.message += "; the empty index could not be deleted again: " + undone.error().message;
  }
  return error;
}

}  // namespace muster::metadata
