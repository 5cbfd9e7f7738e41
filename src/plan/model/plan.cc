#include "plan/model/plan.h"

#include <algorithm>
#include <filesystem>

#include "core/file.h"
#include "core/sha256.h"
#include "core/yaml.h"
#include "plan/model/plan_reader.h"
#include "plan/model/rules.h"

namespace muster::plan {
namespace {

constexpr YamlLimits kPlanLimits{.bytes = 16 * 1024 * 1024, .depth = 32, .nodes = 1'000'000};
constexpr size_t kMaxScriptBytes = size_t{4} << 20;

void NoteContents(Plan& plan) {
  for (auto& [name, script] : plan.scripts) {
    if (script.file.empty()) continue;
    // Reported by the run instead, since AWS does not need one.
    const auto text =
        ReadFile((std::filesystem::path(plan.folder) / script.file).string(), kMaxScriptBytes);
    if (text) script.sha256 = Sha256Hex(*text);
  }
}

}  // namespace

std::string KeyOf(Phase phase, const std::string& task) {
  return std::string(NameOf(phase)) + "/" + task;
}

std::optional<size_t> Plan::FindRank(int64_t number) const {
  const auto found =
      std::lower_bound(ranks.begin(), ranks.end(), number,
                       [](const Rank& rank, int64_t wanted) { return rank.number < wanted; });
  if (found == ranks.end() || found->number != number) return std::nullopt;
  return static_cast<size_t>(found - ranks.begin());
}

Result<const Profile*> Plan::FindProfile(const std::string& profile) const {
  if (profiles.empty()) return Error{Code::kInvalid, path + ": no profile"};
  if (profile.empty()) return &profiles.front();
  std::vector<std::string> names_there;
  for (const Profile& candidate : profiles) {
    if (candidate.name == profile) return &candidate;
    names_there.push_back(candidate.name);
  }
  return Error{Code::kInvalid, path + ": no profile '" + profile + "'",
               SuggestName(profile, names_there)};
}

std::vector<std::string> Plan::ReadBy(const TransformTask& script, const Rank& rank) const {
  std::vector<std::string> read;
  for (const Reference& object : script.reads.empty() ? rank.extract : script.reads)
    read.push_back(object.name);
  return read;
}

std::map<std::string, std::string> Plan::CountedBy(const TransformTask& script,
                                                   const Rank& rank) const {
  std::map<std::string, std::string> counted;
  if (script.counts) {
    for (const auto& [table, object] : *script.counts) counted[table] = object.name;
    return counted;
  }
  const std::vector<std::string> read = ReadBy(script, rank);
  if (read.size() == 1) counted[script.table] = read.front();
  return counted;
}

std::map<std::string, int64_t> Plan::Loaders() const {
  std::map<std::string, int64_t> loaders;
  for (const Rank& rank : ranks) {
    for (const std::string& table : rank.tables) loaders[table] = rank.number;
    for (const Reference& script : rank.transform)
      loaders[scripts.at(script.name).Target()] = rank.number;
  }
  return loaders;
}

CheckedPlan ParsePlan(std::string_view text, const std::string& path,
                      const std::map<std::string, std::string>& variables) {
  Problems problems(path);
  const auto document = ParseYaml(text, path, kPlanLimits);
  if (!document) return {std::nullopt, {document.error().ToString()}};
  Plan plan;
  plan.path = path;
  std::error_code ignored;
  plan.folder = std::filesystem::absolute(path, ignored).parent_path().string();
  plan.variables = variables;
  plan.given = variables;
  CheckSecrets(document->root, problems);
  PlanReader(*document, problems, plan).Read();
  OrderRanks(plan);
  if (!plan.ranks.empty()) CheckRules(plan, problems);
  if (!problems.empty()) return {std::nullopt, problems.Take()};
  return {std::move(plan), {}};
}

CheckedPlan ReadPlan(const std::string& path, const std::map<std::string, std::string>& variables) {
  const auto text = ReadFile(path, kPlanLimits.bytes);
  if (!text) return {std::nullopt, {text.error().ToString()}};
  CheckedPlan checked = ParsePlan(*text, path, variables);
  if (checked.plan) NoteContents(*checked.plan);
  return checked;
}

}  // namespace muster::plan
