#include "plan/run/run_body.h"

#include <algorithm>

#include "core/planted_bug.h"
#include "core/record_fields.h"
#include "plan/compile/profile_states.h"
#include "plan/model/data_flow.h"
#include "plan/model/fields.h"
#include "plan/model/plan_json.h"
#include "plan/run/run_attempts.h"

namespace muster::plan {
namespace {

constexpr size_t kMaxPlanBytes = 200'000;  // of a record, with room for the rest
constexpr size_t kMostDifferences = 5;
constexpr int64_t kMaxAttempts = 100'000;  // in a record: each is looked up
// Raised when older versions could not continue a run.
constexpr RecordFormat kFormat{"plan.run", 2};
constexpr int64_t kEnumsByName = 2;  // since this version

constexpr char kPinsScripts[] = "pins_scripts";
constexpr char kHash[] = "hash";
// Members that are not part of the run's state: they are large, and read where they are needed.
constexpr char kDone[] = "done";
constexpr char kCancel[] = "cancel";
constexpr char kContent[] = "content";

// What a record says of its run. The id is the record's key.
constexpr RecordFields<RunState, 14> kRunFields{{
    Always<RunState, &RunState::plan>("plan"),
    Always<RunState, &RunState::path>("path"),
    Always<RunState, &RunState::folder>("folder"),
    Always<RunState, &RunState::hash>(kHash),
    {kPinsScripts, [](const RunState&, Json& json, std::string_view name) { json[name] = true; },
     [](JsonFields&, RunState&, std::string_view) {}},
    Always<RunState, &RunState::incarnation>("incarnation"),
    Always<RunState, &RunState::unmarked_staging>("unmarked_staging"),
    {"first_start",
     [](const RunState& from, Json& json, std::string_view name) {
       json[name] = from.FirstStart().time_since_epoch().count();
     },
     [](JsonFields& fields, RunState& to, std::string_view name) {
       int64_t first = 0;
       fields.Read(name, first);
       if (first > 0) to.first_start = WallTime(milliseconds(first));
     }},
    Always<RunState, &RunState::profile>("profile"),
    Required<RunState, &RunState::inputs>("inputs"),
    Always<RunState, &RunState::variables>("variables"),
    {"attempt",
     [](const RunState& from, Json& json, std::string_view name) { json[name] = from.attempt; },
     [](JsonFields& fields, RunState& to, std::string_view name) {
       fields.Read(name, to.attempt);
       if (to.attempt >= 1 && to.attempt <= kMaxAttempts) return;
       fields.Mistake("'attempt' is not from 1 to " + std::to_string(kMaxAttempts));
     }},
    Required<RunState, &RunState::execution>("execution"),
    {"attempts",
     [](const RunState& from, Json& json, std::string_view name) {
       json[name] = AttemptsJson(from);
     },
     [](JsonFields& fields, RunState& to, std::string_view name) {
       if (fields.good()) ReadAttempts(fields.Find(name), to);
     }},
}};

bool IsId(const std::string& id) {
  return !id.empty() && id.size() <= kMaxRunNameBytes &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

Json CancelMachine(const Plan& plan, const RunState& run) {
  const auto found = plan.FindProfile(run.profile);
  if (!found) return nullptr;
  const auto profile_states = NewProfileStates(plan, **found, IdentityOf(run));
  Json mark = profile_states->Update(RunStatus::kCancelled);
  mark.emplace("Retry", RetryService());
  mark["ResultPath"] = nullptr;
  Json states;
  if (auto stop = profile_states->StopExtract()) {
    (*stop)["Retry"] = RetryService();
    (*stop)["End"] = true;
    mark["Next"] = "StopExtractions";
    states["StopExtractions"] = {
        {"Type", "Map"},
        {"ItemsPath", std::string("$['") + kBegunInput + "']"},
        {"ItemProcessor",
         {{"StartAt", "StopExtraction"}, {"States", {{"StopExtraction", *std::move(stop)}}}}},
        {"End", true}};
  } else {
    mark["End"] = true;
  }
  states["CancelMigration"] = std::move(mark);
  return {{"StartAt", "CancelMigration"}, {"States", std::move(states)}};
}

// The plan in the form in which the record's version pinned it.
CanonicalForm FormOf(const Json& body) {
  return VersionOf(body) >= kEnumsByName ? CanonicalForm::kNames : CanonicalForm::kNumbers;
}
Plan AsPinnedBy(const Json& body, const Plan& plan) {
  return body.contains(kPinsScripts) ? plan : WithoutContents(plan);
}

// "objects.A.rows: 1 → 2"; digests are left out.
std::string TextOf(const Difference& difference, const Plan& plan) {
  for (const auto& [name, script] : plan.scripts) {
    if (difference.where != "scripts." + name + ".sha256") continue;
    return "the script " + name + ": " + script.file +
           (difference.after.is_null() ? " cannot be read" : " was edited");
  }
  return difference.where + ": " + ToJsonText(difference.before) + " → " +
         ToJsonText(difference.after);
}

}  // namespace

Status CompleteInputs(const Plan& plan, std::map<std::string, std::string>& inputs) {
  std::string wrong;
  std::string missing;
  std::vector<std::string> names;
  for (const auto& [name, value] : plan.inputs) {
    names.push_back(name);
    if (inputs.contains(name)) continue;
    const auto variable = plan.variables.find(name);
    if (variable != plan.variables.end()) {
      inputs[name] = variable->second;
    } else if (value) {
      inputs[name] = *value;
    } else {
      missing += " --input " + name + "=…";
    }
  }
  for (const auto& [name, value] : inputs) {
    if (!plan.inputs.contains(name))
      wrong += (wrong.empty() ? "" : "; ") + ("unknown input '" + name + "'");
  }
  if (!wrong.empty()) return Error{Code::kInvalid, wrong, SuggestName("", names)};
  if (!missing.empty()) return Error{Code::kInvalid, "inputs are missing", "add" + missing};
  if (!IsId(inputs["migrationId"]))
    return Error{Code::kInvalid, "'" + inputs["migrationId"] + "' cannot be a migrationId",
                 "1 to 70 letters, digits and - _ ."};
  return {};
}

RunIdentity IdentityOf(const RunState& run) {
  return {.name = run.id,
          .id = run.incarnation,
          .attempt = run.attempt,
          .folder = run.folder,
          .unmarked_staging = run.unmarked_staging};
}

std::string RunBody(const RunState& run, const Plan& plan, const Json& done) {
  Json canonical = Canonical(plan);
  // A plan too large to be stored is still identified by its hash.
  if (ToJsonText(canonical).size() > kMaxPlanBytes) canonical = nullptr;
  Json body{{kVersionField, kFormat.version}};
  WriteMembers(kRunFields, run, body);
  body[kDone] = done;
  body[kCancel] = CancelMachine(plan, run);
  body[kContent] = std::move(canonical);
  return ToJsonText(body);
}

Result<RunState> ReadRunBody(const store::Record& record) {
  const Json body = Json::parse(record.body, nullptr, false);
  // Version 0 has 'format' instead of 'v'.
  const int64_t version = std::max(VersionOf(body), NumberIn(body, "format"));
  MUSTER_TRY(CheckVersion(version, kFormat, "migration '" + record.key + "'"));
  RunState run;
  run.id = record.key;
  JsonFields fields(body);
  ReadMembers(kRunFields, fields, run);
  MUSTER_TRY(fields.Check("the record of migration '" + record.key + "'"));
  return run;
}

Json DoneOf(const store::Record& record) {
  const Json done = MemberIn(Json::parse(record.body, nullptr, false), kDone);
  return done.is_object() ? done : Json::object();
}

Json CancelMachineOf(const store::Record& record) {
  return MemberIn(Json::parse(record.body, nullptr, false), kCancel);
}

Result<std::optional<Plan>> PinnedPlan(const store::Record& record) {
  const Json content = MemberIn(Json::parse(record.body, nullptr, false), kContent);
  if (content.is_null()) return std::optional<Plan>();
  MUSTER_ASSIGN(Plan plan, ReadCanonical(content));
  return std::optional<Plan>(std::move(plan));
}

bool IsPinned(const store::Record& record, const Plan& plan) {
  const Json body = Json::parse(record.body, nullptr, false);
  return TextIn(body, kHash) == HashOf(AsPinnedBy(body, plan), FormOf(body));
}

std::string DescribeChanges(const store::Record& record, const Plan& plan) {
  const Json body = Json::parse(record.body, nullptr, false);
  const Json& content = MemberIn(body, kContent);
  if (content.is_null()) return "its hash differs";
  std::string text;
  const auto differences = CompareJson(content, Canonical(AsPinnedBy(body, plan), FormOf(body)));
  for (size_t i = 0; i < std::min(differences.size(), kMostDifferences); ++i)
    text += (i == 0 ? "" : "; ") + TextOf(differences[i], plan);
  if (differences.size() > kMostDifferences)
    text += "; and " + std::to_string(differences.size() - kMostDifferences) + " more";
  return text;
}

void AddDone(const Plan& plan, const ExecutionLog& log, Json& done) {
  if (PLANTED_BUG(successes_are_forgotten)) return;
  for (const Rank& rank : plan.ranks) {
    const auto add = [&](Phase phase, const std::string& name) {
      const TaskLog* task = log.Find(rank.number, phase, name);
      if (task != nullptr && task->result.is_object()) done[KeyOf(phase, name)] = task->result;
    };
    for (const Reference& object : rank.extract) add(Phase::kExtract, object.name);
    for (const Reference& script : rank.transform) add(Phase::kTransform, script.name);
    const RankLog* own = log.Find(rank.number);
    if (own != nullptr && own->reconciled.is_object())
      done[ReconcileKey(rank.number)] = own->reconciled;
  }
}

Result<std::set<std::string>> TasksOf(const Plan& plan, const Again& again) {
  std::set<std::string> tasks;
  if (again.rank) {
    const auto place = plan.FindRank(*again.rank);
    if (!place) return Error{Code::kInvalid, "no rank " + std::to_string(*again.rank)};
    for (const Reference& object : plan.ranks[*place].extract)
      tasks.insert(KeyOf(Phase::kExtract, object.name));
    for (const Reference& script : plan.ranks[*place].transform)
      tasks.insert(KeyOf(Phase::kTransform, script.name));
  }
  if (again.task) {
    if (plan.objects.contains(*again.task)) tasks.insert(KeyOf(Phase::kExtract, *again.task));
    if (plan.scripts.contains(*again.task)) tasks.insert(KeyOf(Phase::kTransform, *again.task));
    if (!plan.objects.contains(*again.task) && !plan.scripts.contains(*again.task))
      return Error{Code::kInvalid, "no task '" + *again.task + "'"};
  }
  return tasks;
}

Result<std::set<std::string>> ChangedSince(const store::Record& record, const Plan& plan) {
  MUSTER_ASSIGN(const RunState run, ReadRunBody(record));
  MUSTER_ASSIGN(const std::optional<Plan> pinned, PinnedPlan(record));
  return ChangedTasks(pinned.value_or(Plan()), plan, run.profile);
}

void ForgetReconciled(const Plan& plan, Json& done) {
  for (const Rank& rank : plan.ranks) done.erase(ReconcileKey(rank.number));
}

}  // namespace muster::plan
