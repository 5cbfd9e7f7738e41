#include "plan/model/plan_reader.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "plan/explain/prices.h"

namespace muster::plan {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr int64_t kMaxRows = 1'000'000'000'000;
constexpr int64_t kMaxDpu = 1'000;
constexpr int64_t kMaxRankNumber = 1'000'000'000;

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

// Valid names of schemas and tables: identifiers that need no quoting in any database.
bool IsIdentifier(std::string_view text) {
  if (text.empty() || text.size() > 63 || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsNameCharacter(c) && c != '-' && c != '.'; });
}

}  // namespace

void PlanReader::Read() {
  if (root_.kind == YamlNode::Kind::kNull) {
    problems_.Add(root_.position, "the plan is empty", "it needs 'plan', 'profiles' and 'ranks'");
    return;
  }
  FieldReader fields(problems_, root_, "a plan");
  if (root_.kind != YamlNode::Kind::kMap) return;
  if (const YamlNode* name = fields.Need("plan"); name != nullptr && IsName(*name, "a plan"))
    plan_.name = name->text;
  std::string description;
  fields.Text("description", description);
  if (const YamlNode* node = fields.Find("variables")) ReadVariables(*node);
  plan_.inputs = {{"tenantId", {}}, {"migrationId", {}}, {"environment", {}}};
  if (const YamlNode* node = fields.Find("inputs")) ReadInputs(*node);
  if (const YamlNode* node = fields.Find("names")) ReadNames(*node);
  if (const YamlNode* node = fields.Find("pools")) ReadPools(*node);
  if (const YamlNode* node = fields.Find("prices")) ReadPrices(*node);
  if (const YamlNode* node = fields.Find("rates")) ReadRates(*node);
  size_t policy = 0;
  fields.Choice("on_failure", {"finish-rank", "fail-fast", "continue"}, policy);
  plan_.on_failure = static_cast<FailurePolicy>(policy);
  fields.Seconds("poll", plan_.poll_s);
  ReadPhases(fields);
  fields.Integer("max_unreadable", 0, kMaxRows, plan_.max_unreadable);
  if (const YamlNode* node = fields.Need("profiles")) ReadProfiles(*node);
  if (const YamlNode* node = fields.Find("objects")) ReadObjects(*node);
  if (const YamlNode* node = fields.Find("scripts")) ReadScripts(*node);
  if (const YamlNode* node = fields.Need("ranks")) ReadRanks(*node);
}

bool PlanReader::IsMap(const YamlNode& node, std::string_view what) {
  if (node.kind == YamlNode::Kind::kMap) return true;
  problems_.Add(node.position, std::string(what) + " is not a map from names");
  return false;
}

bool PlanReader::IsName(const YamlNode& key, std::string_view what) {
  const std::string& text = key.text;
  if (!text.empty() && text.size() <= kMaxNameBytes &&
      std::all_of(text.begin(), text.end(), IsNameCharacter)) {
    return true;
  }
  problems_.Add(key.position, "'" + text + "' cannot be the name of " + std::string(what),
                "1 to 64 letters, digits and _ - .");
  return false;
}

void PlanReader::ReadVariables(const YamlNode& node) {
  if (!IsMap(node, "variables")) return;
  for (const YamlEntry& entry : node.entries) {
    if (!IsName(entry.key, "a variable")) continue;
    if (entry.value.kind != YamlNode::Kind::kScalar) {
      problems_.Add(entry.value.position, "the variable " + entry.key.text + " is not a text");
      continue;
    }
    // Values set by the caller take precedence.
    plan_.variables.emplace(entry.key.text, entry.value.text);
  }
}

void PlanReader::ReadInputs(const YamlNode& node) {
  if (!IsMap(node, "inputs")) return;
  for (const YamlEntry& entry : node.entries) {
    if (!IsName(entry.key, "an input")) continue;
    FieldReader fields(problems_, entry.value, "the input " + entry.key.text);
    std::string value;
    std::string description;
    fields.Text("default", value);
    fields.Text("description", description);
    auto& input = plan_.inputs[entry.key.text];
    if (!value.empty()) input = value;
  }
}

void PlanReader::ReadNames(const YamlNode& node) {
  FieldReader fields(problems_, node, "names");
  fields.Text("flow", plan_.names.flow);
  fields.Text("job", plan_.names.job);
  fields.Text("status_table", plan_.names.status_table);
  fields.Text("topic", plan_.names.topic);
  fields.Text("log_group", plan_.names.log_group);
  fields.Text("machine", plan_.names.machine);
}

void PlanReader::ReadPools(const YamlNode& node) {
  FieldReader fields(problems_, node, "pools");
  fields.Integer("flows", 1, kMaxTasks, plan_.pools.flows);
  fields.Integer("jobs", 1, kMaxTasks, plan_.pools.jobs);
  fields.Integer("dpu", 1, kMaxTasks * kMaxDpu, plan_.pools.dpu);
}

void PlanReader::ReadPrices(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kScalar) {
    plan_.prices = ReadPriceFields(node, problems_);
    return;
  }
  const std::filesystem::path path = std::filesystem::path(plan_.folder) / node.text;
  auto prices = ReadPriceFile(path.string());
  if (prices) {
    plan_.prices = *prices;
  } else {
    problems_.Add(node.position, prices.error().message, prices.error().hint);
  }
}

void PlanReader::ReadRates(const YamlNode& node) {
  Rates& rates = plan_.rates;
  FieldReader fields(problems_, node, "rates");
  fields.NumberRange("extract_rows_per_s", 0.001, 1e9, rates.extract_rows_per_s);
  fields.NumberRange("transform_rows_per_dpu_s", 0.001, 1e9, rates.transform_rows_per_dpu_s);
  fields.Number("start_s", 0, 86'400, rates.start_s);
  fields.Number("dpu_exponent", 0, 2, rates.dpu_exponent);
  fields.Number("parquet_speedup", 0.01, 1'000, rates.parquet_speedup);
  fields.Number("parquet_size", 0.001, 10, rates.parquet_size);
}

void PlanReader::ReadPhases(FieldReader& fields) {
  if (const YamlNode* node = fields.Find("retry")) {
    FieldReader phases(problems_, *node, "retry");
    if (const YamlNode* retry = phases.Find("extract")) ReadRetry(*retry, extract_.retry);
    if (const YamlNode* retry = phases.Find("transform")) ReadRetry(*retry, transform_.retry);
  }
  if (const YamlNode* node = fields.Find("timeout")) {
    FieldReader phases(problems_, *node, "timeout");
    phases.Seconds("extract", extract_.timeout_s);
    phases.Seconds("transform", transform_.timeout_s);
  }
}

void PlanReader::ReadTaskRules(FieldReader& fields, PhaseRules& rules) {
  if (const YamlNode* node = fields.Find("retry")) ReadRetry(*node, rules.retry);
  fields.Seconds("timeout", rules.timeout_s);
}

void PlanReader::ReadRetry(const YamlNode& node, RetryRule& retry) {
  FieldReader fields(problems_, node, "retry");
  fields.Seconds("interval", retry.interval_s);
  fields.Integer("attempts", 0, 100, retry.attempts);
  fields.Number("backoff", 1, 100, retry.backoff);
}

void PlanReader::ReadProfiles(const YamlNode& node) {
  if (!IsMap(node, "profiles")) return;
  for (const YamlEntry& entry : node.entries) {
    if (IsName(entry.key, "a profile")) ReadProfile(entry);
  }
  if (node.entries.empty()) problems_.Add(node.position, "no profile");
}

void PlanReader::ReadProfile(const YamlEntry& entry) {
  Profile profile{.name = entry.key.text, .position = entry.key.position};
  FieldReader fields(problems_, entry.value, "the profile " + profile.name);
  size_t kind = profile.name == "aws" ? 1 : 0;
  fields.Choice("kind", {"local", "aws"}, kind);
  profile.kind = static_cast<ProfileKind>(kind);
  fields.Text("source", profile.source);
  fields.Text("target", profile.target);
  fields.Text("staging", profile.staging);
  size_t format = 0;
  fields.Choice("format", {"json", "parquet"}, format);
  profile.format = static_cast<StagingFormat>(format);
  std::vector<Reference> notify;
  fields.Texts("notify", notify);
  for (Reference& target : notify) {
    const bool sns = target.name == "sns";
    if (profile.kind == ProfileKind::kAws && !sns) {
      problems_.Add(target.position,
                    "on AWS, notifications go to sns, not to '" + target.name + "'",
                    "the topic can pass them on");
    }
    if (profile.kind == ProfileKind::kLocal && !sns && target.name.find(':') == std::string::npos) {
      problems_.Add(target.position, "unknown notification target '" + target.name + "'",
                    "sns, https://…, file:PATH or command:PROGRAM");
    }
    profile.notify.push_back(std::move(target.name));
  }
  if (profile.kind == ProfileKind::kLocal) {
    for (const auto& [field, value] :
         {std::pair{"source", &profile.source}, std::pair{"target", &profile.target},
          std::pair{"staging", &profile.staging}}) {
      if (value->empty()) {
        problems_.Add(profile.position, "the profile " + profile.name + " has no " + field);
      }
    }
  }
  plan_.profiles.push_back(std::move(profile));
}

void PlanReader::ReadObjects(const YamlNode& node) {
  if (!IsMap(node, "objects")) return;
  for (const YamlEntry& entry : node.entries) {
    if (!IsName(entry.key, "an object")) continue;
    ExtractTask task{.name = entry.key.text,
                     .position = entry.key.position,
                     .rules = extract_,
                     .max_unreadable = plan_.max_unreadable};
    FieldReader fields(problems_, entry.value, "the object " + task.name);
    fields.Integer("rows", 0, kMaxRows, task.rows);
    fields.TimeRange("time", task.time);
    ReadTaskRules(fields, task.rules);
    fields.Integer("max_unreadable", 0, kMaxRows, task.max_unreadable);
    plan_.objects.emplace(task.name, task);
  }
}

void PlanReader::ReadScripts(const YamlNode& node) {
  if (!IsMap(node, "scripts")) return;
  for (const YamlEntry& entry : node.entries) {
    if (IsName(entry.key, "a script")) ReadScript(entry);
  }
}

void PlanReader::ReadScript(const YamlEntry& entry) {
  TransformTask task{.name = entry.key.text, .position = entry.key.position, .rules = transform_};
  FieldReader fields(problems_, entry.value, "the script " + task.name);
  fields.Text("file", task.file);
  if (!task.file.empty()) CheckInside(fields, task.file);
  if (fields.Need("schema") != nullptr) fields.Text("schema", task.schema);
  if (fields.Need("table") != nullptr) fields.Text("table", task.table);
  CheckIdentifier(fields, "schema", task.schema);
  CheckIdentifier(fields, "table", task.table);
  fields.Integer("dpu", 1, kMaxDpu, task.dpu);
  fields.TimeRange("time", task.time);
  fields.Texts("reads", task.reads);
  if (fields.Find("references") != nullptr) fields.Texts("references", task.refers.emplace());
  if (const YamlNode* counts = fields.Find("counts")) ReadCounts(*counts, task.counts.emplace());
  ReadTaskRules(fields, task.rules);
  plan_.scripts.emplace(task.name, std::move(task));
}

void PlanReader::ReadCounts(const YamlNode& node, std::map<std::string, Reference>& counts) {
  if (!IsMap(node, "counts")) return;
  for (const YamlEntry& entry : node.entries) {
    if (entry.value.kind != YamlNode::Kind::kScalar) {
      problems_.Add(entry.value.position, "counts has an object for each table, by its name");
      continue;
    }
    counts[entry.key.text] = {entry.value.text, entry.value.position};
  }
}

void PlanReader::CheckIdentifier(FieldReader& fields, std::string_view field,
                                 const std::string& value) {
  if (value.empty() || IsIdentifier(value)) return;
  problems_.Add(fields.Find(field)->position, "'" + value + "' cannot be a " + std::string(field),
                "up to 63 letters, digits and _, not beginning with a digit");
}

void PlanReader::CheckInside(FieldReader& fields, const std::string& file) {
  namespace fs = std::filesystem;
  const TextPosition position = fields.Find("file")->position;
  std::error_code error;
  // Symbolic links are resolved: the file itself must be inside.
  const fs::path folder = fs::weakly_canonical(plan_.folder, error);
  const fs::path path = fs::weakly_canonical(fs::path(plan_.folder) / file, error);
  const fs::path relative = path.lexically_relative(folder);
  if (error || relative.empty() || *relative.begin() == "..") {
    problems_.Add(position, "'" + file + "' is outside of the plan's folder",
                  "keep scripts in the plan's folder, so that both are versioned together");
  }
}

void PlanReader::ReadRanks(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kSequence || node.items.empty()) {
    problems_.Add(node.position, "ranks is not a list of ranks");
    return;
  }
  if (node.items.size() > kMaxRanks) {
    problems_.Add(node.position, "there are " + std::to_string(node.items.size()) +
                                     " ranks, more than " + std::to_string(kMaxRanks));
    return;
  }
  for (const YamlNode& item : node.items) ReadRank(item);
}

void PlanReader::ReadRank(const YamlNode& node) {
  Rank rank{.position = node.position};
  FieldReader fields(problems_, node, "a rank");
  const YamlNode* number = fields.Need("rank");
  fields.Integer("rank", 0, kMaxRankNumber, rank.number);
  fields.Text("name", rank.name);
  fields.Text("group", rank.group);
  fields.Flag("external", rank.external);
  std::vector<Reference> tables;
  fields.Texts("tables", tables);
  for (const Reference& table : tables) rank.tables.push_back(table.name);
  if (!tables.empty() && !rank.external) {
    problems_.Add(tables.front().position, "only an external rank names its tables",
                  "other ranks load those of their scripts");
  }
  std::vector<Reference> needs;
  fields.Texts("needs", needs);
  for (const Reference& need : needs) {
    int64_t needed = 0;
    const char* end = need.name.data() + need.name.size();
    const auto parsed = std::from_chars(need.name.data(), end, needed);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      problems_.Add(need.position, "'" + need.name + "' is not the number of a rank");
      continue;
    }
    if (std::find(rank.needs.begin(), rank.needs.end(), needed) == rank.needs.end())
      rank.needs.push_back(needed);
  }
  rank.needs_given = fields.Find("needs") != nullptr;
  fields.Texts("extract", rank.extract);
  fields.Texts("transform", rank.transform);
  if (number == nullptr) return;
  if (rank.external && (!rank.extract.empty() || !rank.transform.empty())) {
    problems_.Add(node.position,
                  "rank " + std::to_string(rank.number) + " is external and has tasks of its own");
  }
  if (!rank.external && rank.extract.empty() && rank.transform.empty()) {
    problems_.Add(node.position, "rank " + std::to_string(rank.number) + " has nothing to do");
  }
  plan_.ranks.push_back(std::move(rank));
}

}  // namespace muster::plan
