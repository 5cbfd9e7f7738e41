#include "metadata/lifecycle.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/json_fields.h"

namespace muster::metadata {
namespace {

constexpr std::array<std::string_view, 5> kPhases = {"hot", "warm", "cold", "frozen", "delete"};

// Their conditions are all lower bounds.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kRollover = {{
    {"max_age", "min_index_age"},
    {"max_size", "min_size"},
    {"max_docs", "min_doc_count"},
    {"max_primary_shard_size", "min_primary_shard_size"},
}};

// One member of an action, under another name; none: the action lacks it.
std::optional<Json> WithMember(const Json& options, const char* from, const char* action,
                               const char* to) {
  if (!options.is_object() || !options.contains(from)) return std::nullopt;
  return Json{{action, Json{{to, options[from]}}}};
}

// The counterpart of an action; none: it has no counterpart.
std::optional<Json> ActionFor(const std::string& name, const Json& options) {
  if (name == "rollover") {
    Json conditions = Json::object();
    for (const auto& [theirs, ours] : kRollover) {
      if (options.is_object() && options.contains(theirs)) conditions[ours] = options[theirs];
    }
    if (conditions.empty()) return std::nullopt;
    return Json{{"rollover", conditions}};
  }
  if (name == "set_priority") return WithMember(options, "priority", "index_priority", "priority");
  if (name == "forcemerge") {
    return WithMember(options, "max_num_segments", "force_merge", "max_num_segments");
  }
  if (name == "shrink") return WithMember(options, "number_of_shards", "shrink", "num_new_shards");
  if (name == "allocate") {
    return WithMember(options, "number_of_replicas", "replica_count", "number_of_replicas");
  }
  if (name == "readonly") return Json{{"read_only", Json::object()}};
  if (name == "delete") return Json{{"delete", Json::object()}};
  return std::nullopt;
}

bool IsZero(const std::string& age) { return age.find_first_of("123456789") == std::string::npos; }

struct Conversion {
  Json states = Json::array();
  bool rolls_over = false;
  std::string left_out;  // actions without a counterpart
};

void AddState(const std::string& phase, const Json& body, Conversion& conversion) {
  Json actions = Json::array();
  const Json& theirs = MemberIn(body, "actions");
  Json last;  // a deleted index has no more actions
  for (const auto& [name, options] : theirs.items()) {
    auto action = ActionFor(name, options);
    if (!action) {
      conversion.left_out += (conversion.left_out.empty() ? "" : ", ") + phase + "." + name;
    } else if (name == "delete") {
      last = *std::move(action);
    } else {
      conversion.rolls_over = conversion.rolls_over || name == "rollover";
      actions.push_back(*std::move(action));
    }
  }
  if (!last.is_null()) actions.push_back(last);
  if (!conversion.states.empty()) {
    Json transition{{"state_name", phase}};
    const std::string age = TextIn(body, "min_age");
    // After a rollover, ages are counted from it.
    const char* condition = conversion.rolls_over ? "min_rollover_age" : "min_index_age";
    if (!IsZero(age)) transition["conditions"] = Json{{condition, age}};
    conversion.states.back()["transitions"].push_back(std::move(transition));
  }
  conversion.states.push_back(
      Json{{"name", phase}, {"actions", actions}, {"transitions", Json::array()}});
}

}  // namespace

Verdict ToIsmPolicy(const Object& object, std::vector<std::string> changes) {
  const Json& phases = MemberIn(MemberIn(object.body, "policy"), "phases");
  if (!phases.is_object() || phases.empty()) {
    return {.outcome = Outcome::kLeftOut, .reason = "it has no phases"};
  }
  Conversion conversion;
  for (const std::string_view phase : kPhases) {
    if (phases.contains(phase)) AddState(std::string(phase), phases[phase], conversion);
  }
  if (conversion.states.empty()) {
    return {.outcome = Outcome::kRefused, .reason = "none of its phases is known"};
  }
  Json policy{{"description", "from lifecycle policy " + object.name},
              {"default_state", conversion.states[0]["name"]},
              {"states", conversion.states}};
  changes.emplace_back("the lifecycle policy becomes a state management policy");
  if (!conversion.left_out.empty()) {
    changes.push_back("actions without a counterpart are left out: " + conversion.left_out);
  }
  const Json& patterns = MemberIn(object.body, "index_patterns");
  if (patterns.is_array() && !patterns.empty()) {
    policy["ism_template"] = Json::array({Json{{"index_patterns", patterns}, {"priority", 1}}});
  }
  return {.outcome = Outcome::kChanged,
          .body = Json{{"policy", std::move(policy)}},
          .changes = std::move(changes)};
}

}  // namespace muster::metadata
