#include "plan/plan_json.h"

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
  plan.rates = {*RangeOf(rates.at("extract_rows_per_s")),
                *RangeOf(rates.at("transform_rows_per_dpu_s")),
                rates.at("start_s"),
                rates.at("dpu_exponent"),
                rates.at("parquet_speedup"),
                rates.at("parquet_size")};
  plan.on_failure = static_cast<FailurePolicy>(json.at("on_failure").get<int>());
  plan.poll_s = json.at("poll_s").get<int64_t>();
  for (const auto& [name, profile] : json.at("profiles").items()) {
    plan.profiles.push_back({.name = name,
                             .kind = static_cast<ProfileKind>(profile.at("kind").get<int>()),
                             .source = profile.at("source"),
                             .target = profile.at("target"),
                             .staging = profile.at("staging"),
                             .format = static_cast<StagingFormat>(profile.at("format").get<int>()),
                             .notify = profile.at("notify").get<std::vector<std::string>>()});
  }
  for (const auto& [name, object] : json.at("objects").items()) {
    plan.objects[name] = {.name = name,
                          .rows = object.at("rows").get<int64_t>(),
                          .time = RangeOf(object.at("time_s")),
                          .rules = RulesOf(object)};
  }
  for (const auto& [name, script] : json.at("scripts").items()) {
    plan.scripts[name] = {.name = name,
                          .file = script.at("file"),
                          .schema = script.at("schema"),
                          .table = script.at("table"),
                          .dpu = script.at("dpu").get<int64_t>(),
                          .time = RangeOf(script.at("time_s")),
                          .reads = References(script.at("reads")),
                          .rules = RulesOf(script)};
  }
  for (const auto& [number, rank] : json.at("ranks").items()) {
    plan.ranks.push_back({.number = std::stoll(number),
                          .name = rank.at("name"),
                          .group = rank.at("group"),
                          .external = rank.at("external").get<bool>(),
                          .tables = rank.at("tables").get<std::vector<std::string>>(),
                          .needs = rank.at("needs").get<std::vector<int64_t>>(),
                          .needs_given = true,
                          .extract = References(rank.at("extract")),
                          .transform = References(rank.at("transform"))});
  }
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
