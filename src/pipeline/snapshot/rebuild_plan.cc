#include "pipeline/snapshot/rebuild_plan.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "core/json_fields.h"
#include "pipeline/snapshot/kept_fields.h"
#include "pipeline/snapshot/snapshot_metadata.h"

namespace muster::pipeline {
namespace {

// Before 6.0 doc values have a format that is not read.
constexpr int64_t kFirstCreated = 6000000;

// Parameters that do not change which values are in the files.
constexpr std::string_view kHarmless[] = {"type",
                                          "store",
                                          "doc_values",
                                          "index",
                                          "fields",
                                          "boost",
                                          "coerce",
                                          "norms",
                                          "similarity",
                                          "analyzer",
                                          "search_analyzer",
                                          "search_quote_analyzer",
                                          "format",
                                          "locale",
                                          "meta",
                                          "eager_global_ordinals",
                                          "index_options",
                                          "split_queries_on_whitespace",
                                          "copy_to",
                                          "include_in_all",
                                          "term_vector",
                                          "position_increment_gap",
                                          "fielddata",
                                          "fielddata_frequency_filter",
                                          "index_prefixes",
                                          "index_phrases",
                                          "time_series_dimension",
                                          "time_series_metric",
                                          "skip_list"};

constexpr std::pair<std::string_view, RebuiltType> kTypes[] = {
    {"long", RebuiltType::kInteger},         {"integer", RebuiltType::kInteger},
    {"short", RebuiltType::kInteger},        {"byte", RebuiltType::kInteger},
    {"float", RebuiltType::kFloat},          {"double", RebuiltType::kDouble},
    {"boolean", RebuiltType::kBoolean},      {"date", RebuiltType::kDate},
    {"date_nanos", RebuiltType::kDateNanos}, {"ip", RebuiltType::kIp},
    {"keyword", RebuiltType::kText},         {"text", RebuiltType::kText}};

bool IsTrue(const Json& value, bool otherwise) {
  if (value.is_boolean()) return value.get<bool>();
  if (value == "true") return true;
  return value == "false" ? false : otherwise;
}

// Whether one of the formats that a date may have is among these.
bool HasFormat(std::string_view formats, std::initializer_list<std::string_view> wanted) {
  while (!formats.empty()) {
    const size_t bars = formats.find("||");
    const std::string_view one = formats.substr(0, bars);
    if (std::find(wanted.begin(), wanted.end(), one) != wanted.end()) return true;
    formats = bars == std::string_view::npos ? "" : formats.substr(bars + 2);
  }
  return false;
}

std::optional<RebuiltType> DateTypeOf(std::string_view type, std::string_view formats) {
  const bool is_nanos = type == "date_nanos";
  if (formats.empty() || HasFormat(formats, {"strict_date_optional_time", "date_optional_time",
                                             "iso8601", "strict_date_optional_time_nanos",
                                             "dateOptionalTime", "strictDateOptionalTime"})) {
    return is_nanos ? RebuiltType::kDateNanos : RebuiltType::kDate;
  }
  if (is_nanos) return std::nullopt;
  if (HasFormat(formats, {"strict_date_time", "date_time", "strictDateTime", "dateTime"})) {
    return RebuiltType::kDate;
  }
  if (HasFormat(formats, {"epoch_millis"})) return RebuiltType::kEpochMillis;
  return std::nullopt;
}

std::optional<RebuiltType> TypeOf(std::string_view name) {
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  return std::nullopt;
}

bool IsHarmless(std::string_view parameter) {
  return std::find(std::begin(kHarmless), std::end(kHarmless), parameter) != std::end(kHarmless);
}

// Walks a mapping.
class Planner {
 public:
  Planner(const Json& mapping, const Json& settings)
      : kept_(MemberIn(mapping, "_source")), settings_(settings) {
    Collect(mapping, "");
    if (IsTrue(MemberIn(settings, "index.mapping.total_fields.ignore_dynamic_beyond_limit"),
               false) &&
        !kept_.KeepsUnknown("", mapped_)) {
      plan_.problems.emplace_back("all (fields beyond a limit are not in the mapping)");
    }
    Object(mapping, "", /*dynamic=*/"true", plan_.root);
  }

  RebuildPlan Take() { return std::move(plan_); }

 private:
  static std::string PathOf(const std::string& parent, const std::string& name) {
    return parent.empty() ? name : parent + "." + name;
  }

  void Problem(const std::string& path, const std::string& why) {
    plan_.problems.push_back((path.empty() ? "the document" : path) + " (" + why + ")");
  }

  // All paths, and those into which values of other fields are copied.
  void Collect(const Json& object, const std::string& parent) {
    for (const auto& [name, property] : MemberIn(object, "properties").items()) {
      const std::string path = PathOf(parent, name);
      mapped_.push_back(path);
      const Json& copies = MemberIn(property, "copy_to");
      if (copies.is_string()) copied_.insert(copies.get<std::string>());
      for (const Json& copy : copies.is_array() ? copies : Json::array()) {
        if (copy.is_string()) copied_.insert(copy.get<std::string>());
      }
      Collect(property, path);
    }
  }

  void Object(const Json& object, const std::string& path, std::string dynamic,
              RebuiltMember& member) {
    const Json& own = MemberIn(object, "dynamic");
    if (own.is_boolean()) dynamic = own.get<bool>() ? "true" : "false";
    if (own.is_string()) dynamic = own.get<std::string>();
    const bool is_enabled = IsTrue(MemberIn(object, "enabled"), true);
    const bool is_known =
        dynamic == "true" || dynamic == "strict" || dynamic == "strict_allow_templates";
    if (!(is_enabled && is_known) && !kept_.KeepsUnknown(path, mapped_)) {
      Problem(path, is_enabled ? "dynamic: " + dynamic + ", so it may have fields without a mapping"
                               : "enabled: false, so its fields have no mapping");
    }
    for (const auto& [name, property] : MemberIn(object, "properties").items()) {
      Property(name, property, PathOf(path, name), dynamic, member);
    }
  }

  void Property(const std::string& name, const Json& property, const std::string& path,
                const std::string& dynamic, RebuiltMember& member) {
    const std::string type = TextIn(property, "type");
    if (type == "nested") {
      if (!kept_.KeepsUnknown(path, mapped_)) Problem(path, "nested objects");
    } else if (type.empty() || type == "object") {
      RebuiltMember inner{.name = name};
      Object(property, path, dynamic, inner);
      if (!inner.members.empty()) member.members.push_back(std::move(inner));
    } else if (type != "alias" && !kept_.Keeps(path)) {
      const std::string why = Leaf(name, property, path, member);
      if (!why.empty()) Problem(path, why);
    }
  }

  // Why its values cannot be rebuilt; empty: they can.
  std::string Leaf(const std::string& name, const Json& property, const std::string& path,
                   RebuiltMember& member) {
    const std::string type_name = TextIn(property, "type");
    if (type_name == "half_float" || type_name == "scaled_float") return type_name + " is rounded";
    auto type = TypeOf(type_name);
    if (!type) return "type " + type_name;
    if (*type == RebuiltType::kDate || *type == RebuiltType::kDateNanos) {
      const std::string format = TextIn(property, "format");
      type = DateTypeOf(type_name, format);
      if (!type) return "date format " + format;
    }
    const bool is_stored = IsTrue(MemberIn(property, "store"), false);
    if (type_name == "text" && !is_stored) return "text without store: true";
    if (!is_stored && !IsTrue(MemberIn(property, "doc_values"), true)) {
      return "neither doc values nor stored";
    }
    if (copied_.contains(path)) return "copy_to adds values of other fields";
    std::string why = WhyChanged(property, type_name);
    if (!why.empty()) return why;
    member.members.push_back({.name = name, .field = plan_.fields.size()});
    plan_.fields.push_back({.path = path, .type = *type, .is_stored = is_stored});
    return "";
  }

  // Whether indexing changed values, or left some out.
  std::string WhyChanged(const Json& property, const std::string& type) const {
    const bool ignores = IsTrue(MemberIn(settings_, "index.mapping.ignore_malformed"), false);
    const bool can_be_malformed = type != "keyword" && type != "text";
    if (can_be_malformed && IsTrue(MemberIn(property, "ignore_malformed"), ignores)) {
      return "ignore_malformed leaves values out";
    }
    const bool by_index = type == "keyword" && settings_.contains("index.mapping.ignore_above");
    if (by_index && !property.contains("ignore_above")) return "ignore_above leaves values out";
    for (const auto& [name, value] : property.items()) {
      if (IsHarmless(name) || name == "ignore_malformed") continue;
      if (value.is_null() || (name == "ignore_above" && value == INT32_MAX)) continue;
      if (name == "ignore_above") return "ignore_above leaves values out";
      if (name == "normalizer") return "normalizer changes values";
      return name;
    }
    return "";
  }

  const KeptFields kept_;
  const Json& settings_;
  std::vector<std::string> mapped_;
  std::set<std::string> copied_;
  RebuildPlan plan_;
};

}  // namespace

RebuildPlan PlanRebuild(const lucene::SnapshotIndex& index) {
  RebuildPlan plan;
  const Json& created = MemberIn(index.settings, "index.version.created");
  const int64_t version = created.is_string() ? std::atoll(created.get<std::string>().c_str())
                                              : NumberIn(index.settings, "index.version.created");
  if (version < kFirstCreated) {
    plan.problems.emplace_back("all (the index was created before version 6)");
    return plan;
  }
  const std::vector<std::string> types = TypesOf(index);
  if (types.size() > 1) {
    plan.problems.emplace_back("all (the index has several types)");
    return plan;
  }
  for (const Json& mapping : index.mappings) {
    if (types.empty() || !mapping.is_object() || !mapping.contains(types.front())) continue;
    return Planner(mapping[types.front()], index.settings).Take();
  }
  return plan;
}

}  // namespace muster::pipeline
