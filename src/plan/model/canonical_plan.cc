#include "core/number.h"
#include "plan/model/plan_json.h"

namespace muster::plan {
namespace {

std::vector<Reference> References(const Json& names) {
  std::vector<Reference> references;
  for (const Json& name : names) references.push_back({name.get<std::string>()});
  return references;
}

std::optional<SecondsRange> RangeOf(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  return SecondsRange{json.at(0).get<double>(), json.at(1).get<double>()};
}

PhaseRules RulesOf(const Json& json) {
  const Json& retry = json.at("retry");
  return {.retry = {.interval_s = retry.at("interval_s").get<int64_t>(),
                    .attempts = retry.at("attempts").get<int64_t>(),
                    .backoff = retry.at("backoff").get<double>()},
          .timeout_s = json.at("timeout_s").get<int64_t>()};
}

std::optional<int64_t> OptionalNumber(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return json.get<int64_t>();
}

// By name or, as older versions wrote it, by number.
template <class Enum, size_t N>
Enum EnumOf(const Json& json, const EnumNames<Enum, N>& names) {
  if (json.is_string()) {
    if (const auto value = names.Find(json.get<std::string>())) return *value;
  } else if (const auto number = json.get<int64_t>(); number >= 0 && number < int64_t{N}) {
    return static_cast<Enum>(number);
  }
  throw Json::Exception(json.dump() + " is not known");
}

void Need(bool there, const std::string& what, const std::string& name) {
  if (!there) throw Json::Exception("no " + what + " '" + name + "'");
}

// Plans are checked before they are pinned, but the record may have been damaged since.
void CheckReferences(const Plan& plan) {
  Need(!plan.profiles.empty(), "profile", "");
  for (const auto& [name, script] : plan.scripts) {
    for (const Reference& object : script.reads)
      Need(plan.objects.contains(object.name), "object", object.name);
  }
  for (size_t i = 0; i < plan.ranks.size(); ++i) {
    const Rank& rank = plan.ranks[i];
    if (i > 0 && rank.number <= plan.ranks[i - 1].number)
      throw Json::Exception("its ranks are not in order");
    for (const Reference& object : rank.extract)
      Need(plan.objects.contains(object.name), "object", object.name);
    for (const Reference& script : rank.transform)
      Need(plan.scripts.contains(script.name), "script", script.name);
    for (const int64_t needed : rank.needs)
      Need(plan.FindRank(needed).has_value(), "rank", std::to_string(needed));
  }
}

Plan Read(const Json& json) {
  Plan plan;
  plan.name = json.at("plan").get<std::string>();
  plan.variables = json.at("variables").get<std::map<std::string, std::string>>();
  const Json inputs = json.value("inputs", Json::object());
  for (const auto& [name, value] : inputs.items()) {
    plan.inputs[name] = value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
  }
  const Json& names = json.at("names");
  plan.names = {names.at("flow"),  names.at("job"),       names.at("status_table"),
                names.at("topic"), names.at("log_group"), names.at("machine")};
  const Json& pools = json.at("pools");
  plan.pools = {OptionalNumber(pools.at("flows")), OptionalNumber(pools.at("jobs")),
                OptionalNumber(pools.at("dpu"))};
  const Json& rates = json.at("rates");
  plan.rates = {RangeOf(rates.at("extract_rows_per_s")).value(),
                RangeOf(rates.at("transform_rows_per_dpu_s")).value(),
                rates.at("start_s"),
                rates.at("dpu_exponent"),
                rates.at("parquet_speedup"),
                rates.at("parquet_size")};
  plan.on_failure = EnumOf(json.at("on_failure"), kFailurePolicyNames);
  plan.poll_s = json.at("poll_s").get<int64_t>();
  for (const auto& [name, profile] : json.at("profiles").items()) {
    plan.profiles.push_back({.name = name,
                             .kind = EnumOf(profile.at("kind"), kProfileKindNames),
                             .source = profile.at("source"),
                             .target = profile.at("target"),
                             .staging = profile.at("staging"),
                             .format = EnumOf(profile.at("format"), kStagingFormatNames),
                             .notify = profile.at("notify").get<std::vector<std::string>>()});
  }
  for (const auto& [name, object] : json.at("objects").items()) {
    plan.objects[name] = {.name = name,
                          .rows = object.at("rows").get<int64_t>(),
                          .time = RangeOf(object.at("time_s")),
                          .rules = RulesOf(object),
                          .max_unreadable = object.value("max_unreadable", int64_t{0})};
  }
  for (const auto& [name, script] : json.at("scripts").items()) {
    plan.scripts[name] = {.name = name,
                          .file = script.at("file"),
                          .sha256 = script.value("sha256", std::string()),
                          .schema = script.at("schema"),
                          .table = script.at("table"),
                          .dpu = script.at("dpu").get<int64_t>(),
                          .time = RangeOf(script.at("time_s")),
                          .reads = References(script.at("reads")),
                          .rules = RulesOf(script)};
  }
  for (const auto& [number, rank] : json.at("ranks").items()) {
    const auto parsed = ParseNumber<int64_t>(number);
    if (!parsed) throw Json::Exception("'" + number + "' is not the number of a rank");
    plan.ranks.push_back({.number = *parsed,
                          .name = rank.at("name"),
                          .group = rank.at("group"),
                          .external = rank.at("external").get<bool>(),
                          .tables = rank.at("tables").get<std::vector<std::string>>(),
                          .needs = rank.at("needs").get<std::vector<int64_t>>(),
                          .needs_given = true,
                          .extract = References(rank.at("extract")),
                          .transform = References(rank.at("transform"))});
  }
  CheckReferences(plan);
  return plan;
}

}  // namespace

Result<Plan> ReadCanonical(const Json& json) {
  try {
    return Read(json);
  } catch (const std::exception& error) {
    return Error{Code::kCorrupt, std::string("a plan that a run has pinned: ") + error.what()};
  }
}

}  // namespace muster::plan
