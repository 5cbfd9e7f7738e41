#include "plan/model/plan_json.h"

#include "core/sha256.h"

namespace muster::plan {
namespace {

Json NamesJson(const std::vector<Reference>& references) {
  Json names = Json::array();
  for (const Reference& reference : references) names.push_back(reference.name);
  return names;
}

Json RangeJson(const std::optional<SecondsRange>& range) {
  if (!range) return nullptr;
  return {range->min, range->max};
}

void PutRules(Json& json, const PhaseRules& rules) {
  json["retry"] = {{"interval_s", rules.retry.interval_s},
                   {"attempts", rules.retry.attempts},
                   {"backoff", rules.retry.backoff}};
  json["timeout_s"] = rules.timeout_s;
}

template <class T>
Json Optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class Enum, size_t N>
Json EnumJson(Enum value, const EnumNames<Enum, N>& names, CanonicalForm form) {
  if (form == CanonicalForm::kNumbers) return static_cast<int>(value);
  return names.NameOf(value);
}

Json ProfilesJson(const Plan& plan, CanonicalForm form) {
  Json json = Json::object();
  for (const Profile& profile : plan.profiles) {
    json[profile.name] = {{"kind", EnumJson(profile.kind, kProfileKindNames, form)},
                          {"source", profile.source},
                          {"target", profile.target},
                          {"staging", profile.staging},
                          {"format", EnumJson(profile.format, kStagingFormatNames, form)},
                          {"notify", profile.notify}};
  }
  return json;
}

void CompareInto(const std::string& where, const Json& before, const Json& after,
                 std::vector<Difference>& differences) {
  if (before == after) return;
  if (!before.is_object() || !after.is_object()) {
    differences.push_back({where, before, after});
    return;
  }
  const std::string prefix = where.empty() ? "" : where + ".";
  for (const auto& [key, value] : before.items())
    CompareInto(prefix + key, value, after.value(key, Json()), differences);
  for (const auto& [key, value] : after.items()) {
    if (!before.contains(key)) differences.push_back({prefix + key, Json(), value});
  }
}

}  // namespace

Json Canonical(const Plan& plan, CanonicalForm form) {
  Json json;
  json["plan"] = plan.name;
  json["variables"] = plan.variables;
  for (const auto& [name, value] : plan.inputs) json["inputs"][name] = Optional(value);
  json["names"] = {{"flow", plan.names.flow},
                   {"job", plan.names.job},
                   {"status_table", plan.names.status_table},
                   {"topic", plan.names.topic},
                   {"log_group", plan.names.log_group},
                   {"machine", plan.names.machine}};
  json["pools"] = {{"flows", Optional(plan.pools.flows)},
                   {"jobs", Optional(plan.pools.jobs)},
                   {"dpu", Optional(plan.pools.dpu)}};
  json["prices"] = {{"per_row", plan.prices.per_row},
                    {"per_dpu_hour", plan.prices.per_dpu_hour},
                    {"per_thousand_transitions", plan.prices.per_thousand_transitions}};
  json["rates"] = {
      {"extract_rows_per_s",
       {plan.rates.extract_rows_per_s.min, plan.rates.extract_rows_per_s.max}},
      {"transform_rows_per_dpu_s",
       {plan.rates.transform_rows_per_dpu_s.min, plan.rates.transform_rows_per_dpu_s.max}},
      {"start_s", plan.rates.start_s},
      {"dpu_exponent", plan.rates.dpu_exponent},
      {"parquet_speedup", plan.rates.parquet_speedup},
      {"parquet_size", plan.rates.parquet_size}};
  json["on_failure"] = EnumJson(plan.on_failure, kFailurePolicyNames, form);
  json["poll_s"] = plan.poll_s;
  json["profiles"] = ProfilesJson(plan, form);
  json["objects"] = Json::object();
  for (const auto& [name, object] : plan.objects) {
    Json entry{{"rows", object.rows}, {"time_s", RangeJson(object.time)}};
    PutRules(entry, object.rules);
    // Keeps the hash of runs of older versions, which had no limit.
    if (object.max_unreadable > 0) entry["max_unreadable"] = object.max_unreadable;
    json["objects"][name] = std::move(entry);
  }
  json["scripts"] = Json::object();
  for (const auto& [name, script] : plan.scripts) {
    Json entry{{"file", script.file},
               {"schema", script.schema},
               {"table", script.table},
               {"dpu", script.dpu},
               {"time_s", RangeJson(script.time)},
               {"reads", NamesJson(script.reads)},
               {"references", script.refers ? NamesJson(*script.refers) : Json()}};
    if (!script.sha256.empty()) entry["sha256"] = script.sha256;
    if (script.counts) {
      entry["counts"] = Json::object();
      for (const auto& [table, object] : *script.counts) entry["counts"][table] = object.name;
    }
    PutRules(entry, script.rules);
    json["scripts"][name] = std::move(entry);
  }
  json["ranks"] = Json::object();
  for (const Rank& rank : plan.ranks) {
    json["ranks"][std::to_string(rank.number)] = {{"name", rank.name},
                                                  {"group", rank.group},
                                                  {"external", rank.external},
                                                  {"tables", rank.tables},
                                                  {"needs", rank.needs},
                                                  {"extract", NamesJson(rank.extract)},
                                                  {"transform", NamesJson(rank.transform)}};
  }
  return json;
}

Plan WithoutContents(Plan plan) {
  for (auto& [name, script] : plan.scripts) script.sha256.clear();
  return plan;
}

std::string HashOf(const Plan& plan, CanonicalForm form) {
  return Sha256Hex(ToJsonText(Canonical(plan, form)));
}

std::vector<Difference> Compare(const Plan& before, const Plan& after) {
  return CompareJson(Canonical(before), Canonical(after));
}

std::vector<Difference> CompareJson(const Json& before, const Json& after) {
  std::vector<Difference> differences;
  CompareInto("", before, after, differences);
  return differences;
}

}  // namespace muster::plan
