#include "plan/model/rules.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "core/secrets.h"
#include "core/url.h"
#include "plan/model/name_template.h"
#include "plan/model/order.h"

namespace muster::plan {
namespace {

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// One check of a plan.
class Rules {
 public:
  Rules(const Plan& plan, Problems& problems) : plan_(plan), problems_(problems), order_(plan) {}

  void Check() {
    if (std::all_of(plan_.ranks.begin(), plan_.ranks.end(),
                    [](const Rank& rank) { return rank.external; })) {
      problems_.Add(plan_.ranks.front().position, "all ranks are external: nothing to do");
    }
    CheckNumbers();
    CheckTasks();
    for (size_t rank = 0; rank < plan_.ranks.size(); ++rank) {
      if (plan_.ranks[rank].external) {
        for (const std::string& table : plan_.ranks[rank].tables) loads_.emplace(table, rank);
      }
    }
    for (const auto& [name, script] : plan_.scripts) {
      if (!runs_.contains(name)) continue;
      CheckReads(script, runs_.at(name));
      CheckCounts(script, runs_.at(name));
      CheckReferences(script, runs_.at(name));
      CheckPool(script);
    }
    CheckNames();
  }

 private:
  std::string Label(size_t rank) const {
    return "rank " + std::to_string(plan_.ranks[rank].number);
  }

  void CheckNumbers() {
    for (size_t i = 0; i < plan_.ranks.size(); ++i) {
      const Rank& rank = plan_.ranks[i];
      if (i > 0 && plan_.ranks[i - 1].number == rank.number)
        problems_.Add(rank.position, Label(i) + " is listed twice");
      for (const int64_t need : rank.needs) {
        if (!plan_.FindRank(need)) {
          std::vector<std::string> numbers;
          for (const Rank& other : plan_.ranks) numbers.push_back(std::to_string(other.number));
          problems_.Add(rank.position,
                        Label(i) + " needs rank " + std::to_string(need) + ", which does not exist",
                        SuggestName(std::to_string(need), numbers));
        } else if (need >= rank.number) {
          problems_.Add(
              rank.position,
              Label(i) + " needs " +
                  (need == rank.number ? "itself" : "a later one, rank " + std::to_string(need)),
              "ranks are numbered in the order they run in");
        }
      }
    }
    if (order_.cycle().empty()) return;
    std::string chain;
    for (const size_t rank : order_.cycle()) chain += Label(rank) + " needs ";
    problems_.Add(plan_.ranks[order_.cycle().front()].position,
                  "ranks wait for each other: " + chain + Label(order_.cycle().front()));
  }

  void CheckTasks() {
    const std::vector<std::string> objects = NamesIn(plan_.objects);
    const std::vector<std::string> scripts = NamesIn(plan_.scripts);
    for (size_t i = 0; i < plan_.ranks.size(); ++i) {
      for (const Reference& object : plan_.ranks[i].extract) {
        if (!plan_.objects.contains(object.name)) {
          const std::string near = SuggestName(object.name, objects);
          problems_.Add(object.position, "flow not found: no object '" + object.name + "'",
                        near.empty() ? "add it to objects" : near);
          continue;
        }
        const auto [first, is_new] = extracts_.emplace(object.name, i);
        if (!is_new) {
          problems_.Add(object.position,
                        object.name + " is extracted twice, first in " + Label(first->second));
        }
      }
      for (const Reference& script : plan_.ranks[i].transform) {
        const auto task = plan_.scripts.find(script.name);
        if (task == plan_.scripts.end()) {
          const std::string near = SuggestName(script.name, scripts);
          problems_.Add(script.position, "job not found: no script '" + script.name + "'",
                        near.empty() ? "add it to scripts" : near);
          continue;
        }
        const auto [first, is_new] = runs_.emplace(script.name, i);
        if (!is_new) {
          problems_.Add(script.position,
                        script.name + " runs twice, first in " + Label(first->second));
          continue;
        }
        const auto [loaded, is_first] = loads_.emplace(task->second.Target(), i);
        if (!is_first) {
          problems_.Add(script.position, "the table " + loaded->first +
                                             " is loaded twice, first in " + Label(loaded->second));
        }
      }
    }
    // SQL treats such names as equal, and so do some file systems.
    std::map<std::string, std::string> folded;
    for (const auto& [name, object] : plan_.objects) {
      if (!extracts_.contains(name)) problems_.Add(object.position, "no rank extracts " + name);
      const auto [other, is_new] = folded.emplace(Lower(name), name);
      if (!is_new) {
        problems_.Add(object.position,
                      name + " and " + other->second + " differ in upper and lower case only");
      }
    }
    for (const auto& [name, script] : plan_.scripts) {
      if (!runs_.contains(name)) problems_.Add(script.position, "no rank runs " + name);
    }
    if (extracts_.size() + runs_.size() > kMaxTasks) {
      problems_.Add(plan_.ranks.front().position,
                    "there are " + std::to_string(extracts_.size() + runs_.size()) +
                        " tasks, more than " + std::to_string(kMaxTasks),
                    "split it into several plans");
    }
  }

  void CheckReads(const TransformTask& script, size_t rank) {
    for (const Reference& object : script.reads) {
      const auto found = extracts_.find(object.name);
      if (found == extracts_.end()) {
        problems_.Add(object.position,
                      script.name + " reads '" + object.name + "', which no rank extracts",
                      SuggestName(object.name, NamesIn(plan_.objects)));
      } else if (found->second != rank && !order_.IsBefore(found->second, rank)) {
        problems_.Add(object.position,
                      script.name + " in " + Label(rank) + " reads " + object.name +
                          ", which is extracted in " + Label(found->second),
                      "extract it in a rank that " + Label(rank) + " needs");
      }
    }
  }

  // A script can only load rows that it reads.
  void CheckCounts(const TransformTask& script, size_t rank) {
    if (!script.counts) return;
    const auto reads = plan_.ReadBy(script, plan_.ranks[rank]);
    for (const auto& [table, object] : *script.counts) {
      if (std::find(reads.begin(), reads.end(), object.name) != reads.end()) continue;
      problems_.Add(
          object.position,
          script.name + " counts the rows of '" + object.name + "', which it does not read",
          SuggestName(object.name, reads));
    }
  }

  void CheckReferences(const TransformTask& script, size_t rank) {
    if (!script.refers) return;
    for (const Reference& table : *script.refers) {
      if (table.name == script.Target()) continue;
      const auto found = loads_.find(table.name);
      if (found == loads_.end()) {
        problems_.Add(table.position,
                      script.Target() + " refers to " + table.name + ", which nothing loads",
                      SuggestName(table.name, NamesIn(loads_)));
      } else if (!order_.IsBefore(found->second, rank)) {
        problems_.Add(table.position,
                      script.Target() + " in " + Label(rank) + " is loaded before " + table.name +
                          " in " + Label(found->second) + ", which its foreign key points to",
                      "let " + Label(rank) + " need " + Label(found->second));
      }
    }
  }

  void CheckPool(const TransformTask& script) {
    if (!plan_.pools.dpu || script.dpu <= *plan_.pools.dpu) return;
    problems_.Add(script.position, script.name + " takes " + std::to_string(script.dpu) +
                                       " DPU, and the pool has " +
                                       std::to_string(*plan_.pools.dpu));
  }

  void CheckNames() {
    const auto aws = std::find_if(plan_.profiles.begin(), plan_.profiles.end(),
                                  [](const auto& p) { return p.kind == ProfileKind::kAws; });
    for (const Profile& profile : plan_.profiles) {
      for (const std::string* text : {&profile.source, &profile.target, &profile.staging}) {
        CheckTemplate(*text, {}, profile);
        CheckReferenceForms(*text, profile);
      }
      const auto& notify = profile.notify;
      for (const std::string& target : notify) CheckReferenceForms(target, profile);
      if (profile.kind == ProfileKind::kLocal &&
          std::find(notify.begin(), notify.end(), "sns") != notify.end())
        CheckTemplate(plan_.names.topic, {}, profile);
    }
    if (aws == plan_.profiles.end()) return;
    CheckTemplate(plan_.names.flow, {"object", "rank"}, *aws);
    CheckTemplate(plan_.names.job, {"script", "rank"}, *aws);
    for (const std::string* text : {&plan_.names.status_table, &plan_.names.topic,
                                    &plan_.names.log_group, &plan_.names.machine})
      CheckTemplate(*text, {}, *aws);
  }

  void CheckTemplate(const std::string& text, const std::vector<std::string>& own,
                     const Profile& profile) {
    std::vector<std::string> known = own;
    for (const auto& [name, value] : plan_.variables) known.push_back(name);
    for (const auto& [name, value] : plan_.inputs) known.push_back(name);
    known.emplace_back(kPlanFolder);
    for (const std::string& name : PlaceholdersOf(text)) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      problems_.Add(profile.position,
                    "'" + text + "' has {" + name + "}, which is neither a variable nor an input",
                    SuggestName(name, known));
    }
  }

  // A run would only notice when it uses the text, perhaps after hours of extraction.
  void CheckReferenceForms(const std::string& text, const Profile& profile) {
    for (const std::string& literal : LiteralsOf(text)) {
      const Status known = CheckSecretForms(literal);
      if (known) continue;
      const bool is_cut = literal.find('}', literal.rfind("${")) == literal.npos;
      if (is_cut && !PlaceholdersOf(text).empty()) {
        problems_.Add(profile.position, "'" + text + "' has a name in braces in a secret reference",
                      "write the whole reference: what a run fills in cannot choose a secret");
      } else {
        problems_.Add(profile.position, known.error().message, known.error().hint);
      }
      return;
    }
  }

  const Plan& plan_;
  Problems& problems_;
  const Order order_;
  std::map<std::string, size_t> extracts_;  // the rank of each object
  std::map<std::string, size_t> runs_;      // of each script
  std::map<std::string, size_t> loads_;     // of each table
};

}  // namespace

void OrderRanks(Plan& plan) {
  std::stable_sort(plan.ranks.begin(), plan.ranks.end(),
                   [](const Rank& a, const Rank& b) { return a.number < b.number; });
  for (size_t i = 1; i < plan.ranks.size(); ++i) {
    Rank& rank = plan.ranks[i];
    if (!rank.needs_given && !rank.external) rank.needs = {plan.ranks[i - 1].number};
  }
}

void CheckRules(const Plan& plan, Problems& problems) { Rules(plan, problems).Check(); }

void CheckFiles(const Plan& plan, Problems& problems) {
  const bool local = std::any_of(plan.profiles.begin(), plan.profiles.end(),
                                 [](const Profile& p) { return p.kind == ProfileKind::kLocal; });
  if (!local) return;
  for (const auto& [name, script] : plan.scripts) {
    std::error_code error;
    const auto path = std::filesystem::path(plan.folder) / script.file;
    if (script.file.empty()) {
      problems.Add(script.position, "the script " + name + " has no file",
                   "a local profile runs it");
    } else if (!std::filesystem::is_regular_file(path, error)) {
      problems.Add(script.position, "job not found: no file '" + script.file + "' for " + name);
    }
  }
}

void CheckSecrets(const YamlNode& node, Problems& problems) {
  for (const YamlNode& item : node.items) CheckSecrets(item, problems);
  for (const YamlEntry& entry : node.entries) CheckSecrets(entry.value, problems);
  if (node.kind != YamlNode::Kind::kScalar) return;
  const auto url = ParseUrl(node.text);
  const bool password = url && ((!url->password.empty() && !IsSecretReference(url->password)) ||
                                !IsSecretReference(url->Param("password").value_or("${env:NONE}")));
  // The two forms of AWS's access keys.
  const bool key =
      node.text.size() == 20 && (node.text.starts_with("AKIA") || node.text.starts_with("ASIA"));
  if (!password && !key) return;
  if (url) RememberSecret(url->password);
  problems.Add(node.position, "a plain-text secret", "write ${env:NAME} or ${file:PATH}");
}

}  // namespace muster::plan
