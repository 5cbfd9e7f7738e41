#include "serve/failures.h"

#include <algorithm>

#include "core/enum_names.h"
#include "core/signature.h"
#include "serve/merge_patch.h"

namespace muster::serve {
namespace {

constexpr size_t kMaxExamples = 20;

constexpr EnumNames<FailureKind, 6> kKinds{{{
    {FailureKind::kDeadLetter, "dead_letter"},
    {FailureKind::kItem, "item"},
    {FailureKind::kStore, "store"},
    {FailureKind::kStream, "stream"},
    {FailureKind::kTask, "task"},
    {FailureKind::kWorker, "worker"},
}}};

Json ToJson(const Failure& failure) {
  Json json{{"kind", kKinds.NameOf(failure.kind)}, {"name", failure.name}};
  if (!failure.store.empty()) json["store"] = failure.store;
  if (!failure.run.empty()) json["run"] = failure.run;
  json["error"] = failure.error;
  if (failure.at) json["at"] = failure.at->time_since_epoch().count();
  json["path"] = failure.path;
  return json;
}

}  // namespace

void FailureGroups::Add(const Failure& failure, int64_t count) {
  Group& group = groups_[SignatureOf(failure.error)];
  group.count += count;
  group.kinds[failure.kind] += count;
  if (group.examples.size() < kMaxExamples) group.examples.push_back(failure);
  total_ += count;
}

void FailureGroups::Add(const FailureGroups& other) {
  for (const auto& [signature, added] : other.groups_) {
    Group& group = groups_[signature];
    group.count += added.count;
    for (const auto& [kind, count] : added.kinds) group.kinds[kind] += count;
    for (const Failure& example : added.examples) {
      if (group.examples.size() < kMaxExamples) group.examples.push_back(example);
    }
  }
  total_ += other.total_;
}

Json FailureGroups::Largest(size_t most) const {
  std::vector<const std::pair<const std::string, Group>*> sorted;
  for (const auto& group : groups_) sorted.push_back(&group);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->second.count > b->second.count; });
  if (sorted.size() > most) sorted.resize(most);
  Json json = Json::object();
  for (const auto* entry : sorted) {
    const auto& [signature, group] = *entry;
    Json kinds = Json::object();
    for (const auto& [kind, count] : group.kinds) kinds[kKinds.NameOf(kind)] = count;
    Json one{{"signature", signature},
             {"count", group.count},
             {"kinds", std::move(kinds)},
             {"examples", Json::array()}};
    for (const Failure& failure : group.examples) one["examples"].push_back(ToJson(failure));
    AppendMember(json, signature, std::move(one));
  }
  return json;
}

}  // namespace muster::serve
