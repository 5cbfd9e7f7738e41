#include "metadata/job.h"

#include <algorithm>
#include <utility>

#include "core/json_fields.h"
#include "metadata/compare.h"
#include "metadata/created_index.h"

namespace muster::metadata {
namespace {

Verdict Refusal(const Error& error) {
  return {.outcome = Outcome::kRefused, .reason = error.ToString()};
}

Verdict AlreadyThere(const Verdict& verdict) {
  return {.outcome = Outcome::kOk, .reason = "already there", .name = verdict.name};
}

void AddDropped(const std::vector<std::string>& dropped, Verdict& verdict) {
  if (dropped.empty()) return;
  std::string names;
  for (const std::string& name : dropped) names += (names.empty() ? "" : ", ") + name;
  verdict.outcome = Outcome::kChanged;
  verdict.changes.push_back("settings that the target does not know are dropped: " + names);
}

}  // namespace

Result<std::vector<Reported>> Job::Run(Mode mode, std::vector<SourceObject> objects,
                                       const Sampler& sample,
                                       const std::function<void(const Reported&)>& report,
                                       const std::stop_token& stop) {
  std::stable_sort(objects.begin(), objects.end(),
                   [](const auto& a, const auto& b) { return a.object.kind < b.object.kind; });
  if (options_.selects) LeaveOutUnrelated(objects);
  std::vector<Reported> all;
  for (const SourceObject& one : objects) {
    if (stop.stop_requested()) return Error{Code::kCancelled, "stopped on request"};
    auto verdict = Decide(mode, one, sample);
    if (!verdict && !IsRefusal(verdict.error())) {
      return verdict.error().Within(std::string(kKinds.NameOf(one.object.kind)) + " " +
                                    one.object.name);
    }
    all.push_back({one.object.kind, one.object.name,
                   verdict ? *std::move(verdict) : Refusal(verdict.error())});
    if (mode == Mode::kEvaluate && one.object.kind == Kind::kComponentTemplate &&
        all.back().verdict.IsKept()) {
      pending_.push_back(all.back().verdict.name);
    }
    report(all.back());
  }
  return all;
}

Result<bool> Job::Knows(Kind kind) {
  if (kind == Kind::kIndex) return true;
  const auto known = known_.find(kind);
  if (known != known_.end()) return known->second;
  MUSTER_ASSIGN(const bool knows, target_.Knows(kind));
  known_[kind] = knows;
  return knows;
}

Result<Verdict> Job::Decide(Mode mode, const SourceObject& one, const Sampler& sample) {
  const Object& object = one.object;
  if (one.is_unknown) return Verdict{.outcome = Outcome::kRefused, .reason = one.refusal};
  // Only the name is known, so a script has nothing to decide.
  const bool is_bare = !one.refusal.empty() && object.body.empty();
  Verdict verdict = (is_bare ? built_in_ : rules_).Apply(object, versions_, options_.overrides);
  if (!verdict.IsKept()) return verdict;
  if (is_bare) return Verdict{.outcome = Outcome::kLeftOut, .reason = one.refusal};
  MUSTER_ASSIGN(const bool known, Knows(object.kind));
  if (!known) {
    return Verdict{.outcome = Outcome::kLeftOut, .reason = "the target has no such objects"};
  }
  if (!one.refusal.empty()) verdict.changes.push_back("its documents: " + one.refusal);
  const auto [taken, is_free] = taken_.try_emplace({object.kind, verdict.name}, object.name);
  if (!is_free) {
    return Verdict{
        .outcome = Outcome::kRefused,
        .reason = "in the target, " + taken->second + " has its name already: " + verdict.name};
  }
  return Carry(mode, object, std::move(verdict), sample);
}

// Carries out the mode for one object.
Result<Verdict> Job::Carry(Mode mode, const Object& object, Verdict verdict,
                           const Sampler& sample) {
  MUSTER_ASSIGN(const auto found, target_.Find(object.kind, verdict.name));
  if (found) return CompareWith(mode, object, std::move(verdict), *found, sample);
  if (mode == Mode::kDiff) {
    return Verdict{.outcome = Outcome::kDifferent, .reason = "missing in the target"};
  }
  if (mode == Mode::kEvaluate) return Try(object, std::move(verdict), sample);
  const auto created = Create(object.kind, verdict.name, verdict.body);
  if (!created && created.error().code == Code::kConflict) {
    MUSTER_ASSIGN(const auto there, target_.Find(object.kind, verdict.name));
    if (there) return CompareWith(mode, object, std::move(verdict), *there, sample);
  }
  if (!created) return created.error();
  AddDropped(created->dropped, verdict);
  if (!created->added.empty()) {
    verdict.outcome = Outcome::kChanged;
    verdict.changes.push_back("the target's templates add " + Joined(created->added));
  }
  return verdict;
}

Result<CreatedIndex> Job::Create(Kind kind, const std::string& name, const Json& body) {
  if (kind == Kind::kIndex) return CreateIndex(target_, built_in_, name, body);
  if (kind == Kind::kDataStream && IsStream(body)) {
    MUSTER_TRY(CreateStream(target_, rules_, versions_, name, body, /*evaluate=*/false));
    return CreatedIndex();
  }
  MUSTER_ASSIGN(auto dropped, target_.Create(kind, name, body));
  return CreatedIndex{.dropped = std::move(dropped), .added = {}};
}

Json Job::Normalized(Kind kind, const std::string& name, const Json& found) const {
  if (kind == Kind::kPolicy) return Json{{"policy", MemberIn(found, "policy")}};
  const Verdict verdict = built_in_.Apply({kind, name, found}, {versions_.to, versions_.to}, {});
  return verdict.IsKept() ? verdict.body : found;
}

// Settings dropped because the target lacks them do not count as missing later.
Result<bool> Job::DropUnknown(Kind kind, const Json& there, Verdict& verdict) {
  Json& settings = ContentOf(kind, verdict.body)["settings"];
  const Json& found = MemberIn(std::as_const(ContentOf<const Json>(kind, there)), "settings");
  Json missing = Json::object();
  for (const auto& [name, value] : settings.items()) {
    if (!found.contains(name)) missing[name] = value;
  }
  if (missing.empty()) return false;
  const auto unknown = target_.Try(Kind::kComponentTemplate,
                                   Json{{"template", Json{{"settings", std::move(missing)}}}}, {});
  if (!unknown && !IsRefusal(unknown.error())) return unknown.error();
  if (!unknown) return false;
  for (const std::string& name : *unknown) settings.erase(name);
  AddDropped(*unknown, verdict);
  return !unknown->empty();
}

Result<Verdict> Job::CompareStream(const Object& object, const Verdict& verdict,
                                   const Json& found) {
  const Json& indices = MemberIn(found, "indices");
  if (!IsStream(object.body) || indices.empty()) return AlreadyThere(verdict);
  MUSTER_ASSIGN(const auto newest,
                target_.Find(Kind::kIndex, TextIn(indices.back(), "index_name")));
  const Verdict wanted = built_in_.Apply({Kind::kIndex, verdict.name, object.body}, versions_, {});
  if (!newest || !wanted.IsKept()) return AlreadyThere(verdict);
  const auto harmful = AdditionsTo(wanted.body, *newest, built_in_, versions_.to).harmful;
  if (harmful.empty()) return AlreadyThere(verdict);
  return Verdict{.outcome = Outcome::kDifferent, .reason = Joined(harmful)};
}

// An existing object of the target is never changed.
Result<Verdict> Job::CompareWith(Mode mode, const Object& object, Verdict verdict,
                                 const Json& found, const Sampler& sample) {
  if (object.kind == Kind::kDataStream) return CompareStream(object, verdict, found);
  const Json there = Normalized(object.kind, verdict.name, found);
  if (mode == Mode::kEvaluate && object.kind == Kind::kIndex) {
    MUSTER_ASSIGN(const auto documents, sample(object.name));
    Json index = Json::object();
    for (const char* part : {"settings", "mappings"}) {
      if (there.contains(part)) index[part] = there[part];
    }
    if (!documents.empty()) MUSTER_TRY(target_.Try(Kind::kIndex, index, documents));
  }
  Differences differences = Compare(object.kind, verdict.body, there);
  if (!differences.wanted.empty() && HasContent(object.kind)) {
    MUSTER_ASSIGN(const bool dropped, DropUnknown(object.kind, there, verdict));
    if (dropped) differences = Compare(object.kind, verdict.body, there);
  }
  // Members that documents have added are no difference; members that would change documents are.
  if (mode != Mode::kDiff && differences.wanted.empty() && object.kind == Kind::kIndex) {
    differences.wanted = AdditionsTo(verdict.body, found, built_in_, versions_.to).harmful;
  }
  if (mode == Mode::kDiff) {
    for (std::string& extra : differences.extra) differences.wanted.push_back(std::move(extra));
  }
  if (!differences.wanted.empty()) {
    return Verdict{.outcome = Outcome::kDifferent, .reason = Joined(differences.wanted)};
  }
  return AlreadyThere(verdict);
}

Result<Verdict> Job::Try(const Object& object, Verdict verdict, const Sampler& sample) {
  std::vector<Sample> documents;
  if (object.kind == Kind::kIndex) {
    MUSTER_ASSIGN(const auto harmful, HarmfulTemplates(target_, verdict.name, verdict.body));
    MUSTER_TRY(CheckTemplates(object.name, harmful));
    MUSTER_ASSIGN(documents, sample(object.name));
  }
  Json body = verdict.body;
  if (object.kind == Kind::kIndexTemplate && body["composed_of"].is_array()) {
    Json others = Json::array();
    for (const Json& name : body["composed_of"]) {
      const bool is_pending =
          name.is_string() &&
          std::find(pending_.begin(), pending_.end(), name.get<std::string>()) != pending_.end();
      if (!is_pending) others.push_back(name);
    }
    body["composed_of"] = std::move(others);
  }
  MUSTER_ASSIGN(const auto dropped, target_.Try(object.kind, std::move(body), documents));
  AddDropped(dropped, verdict);
  return verdict;
}

}  // namespace muster::metadata
