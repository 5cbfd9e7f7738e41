#include "serve/replica_view.h"

#include <algorithm>

#include "core/mutex.h"
#include "serve/merge_patch.h"
#include "serve/offers.h"

namespace muster::serve {
namespace {

constexpr size_t kMaxTransitions = 100;

std::string NameOf(const std::string& id, const replica::MemberState& state) {
  return state.name.empty() ? id : state.name;
}

std::string_view PhaseOf(const replica::Generation& generation) {
  if (generation.number == 0) return "none";
  return replica::PhaseName(generation.phase);
}

// Members with a part in the generation that are not ready for it.
std::string NotReady(const replica::SetView& view) {
  std::string names;
  for (const std::string& id : view.generation.assignment.members) {
    const auto member = view.members.find(id);
    if (member != view.members.end() && member->second.state.ReadyFor(view.generation.number)) {
      continue;
    }
    const bool gone = member == view.members.end() || !member->second.state.Alive();
    names += (names.empty() ? "" : ", ") +
             (member == view.members.end() ? id : NameOf(id, member->second.state)) +
             (gone ? " (gone)" : "");
  }
  return names;
}

std::string WhySet(const replica::SetView& view) {
  if (replica::CountAlive(view) == 0)
    return "it has no worker: start one with 'muster replica run'";
  if (view.generation.number == 0) return "its first generation is about to be created";
  if (view.generation.phase == replica::Generation::Phase::kRunning) return "";
  const std::string missing = NotReady(view);
  return missing.empty() ? "all are ready; it is about to start" : "waits for " + missing;
}

std::string WhyMember(const replica::SetView& view, const std::string& id,
                      const replica::MemberState& state) {
  if (state.phase == replica::MemberState::Phase::kDead) {
    return "declared dead" + (state.error.empty() ? "" : ": " + state.error);
  }
  if (state.phase == replica::MemberState::Phase::kStopped) return "has left";
  if (state.phase == replica::MemberState::Phase::kStopping) return "is leaving";
  if (view.generation.assignment.PartitionOf(id) < 0) {
    return view.scale
               ? "stands by: at most " + std::to_string(*view.scale) + " workers get a partition"
               : "waits for the next generation";
  }
  if (!state.ReadyFor(view.generation.number)) {
    return "prepares for generation " + std::to_string(view.generation.number);
  }
  if (state.phase == replica::MemberState::Phase::kRunning) return "";
  return "ready; waiting for the others";
}

Json SummaryOf(const SiteStore& store, const std::string& set, const replica::SetView& view) {
  const replica::Generation& generation = view.generation;
  int ready = 0;
  for (const auto& [id, member] : view.members) {
    if (!member.state.Alive()) continue;
    const bool part = generation.assignment.PartitionOf(id) >= 0;
    if (part && member.state.ReadyFor(generation.number)) ++ready;
  }
  Json json{{"store", store.number},
            {"set", set},
            {"generation", generation.number},
            {"phase", PhaseOf(generation)},
            {"partitions", generation.assignment.members.size()},
            {"workers", replica::CountAlive(view)},
            {"ready", ready}};
  if (const std::string why = WhySet(view); !why.empty()) json["why"] = why;
  if (!generation.reason.empty()) json["reason"] = generation.reason;
  if (generation.since_ms > 0) json["since_at"] = generation.since_ms;
  return json;
}

Json UnreadableSet(const SiteStore& store, const std::string& set, const Error& error) {
  Json json = SummaryOf(store, set, {});
  json["phase"] = "unreadable";
  json["why"] = error.ToString();
  return json;
}

void AddLag(const replica::SetStatus& status, Json& json) {
  int64_t events = 0;
  int64_t parked = 0;
  int64_t parked_events = 0;
  milliseconds time{0};
  for (const replica::InstanceStatus& instance : status.instances) {
    events += instance.lag_events;
    time = std::max(time, instance.lag_time);
    parked += static_cast<int64_t>(instance.parked.size());
    parked_events += instance.parked_events;
  }
  json["lag_events"] = events;
  json["lag_ms"] = time.count();
  json["parked"] = parked;
  json["parked_events"] = parked_events;
}

Json MembersOf(const replica::SetView& view) {
  const replica::Assignment& assignment = view.generation.assignment;
  Json members = Json::object();
  for (const auto& [id, member] : view.members) {
    const int partition = assignment.PartitionOf(id);
    Json json{{"name", NameOf(id, member.state)},
              {"phase", replica::PhaseName(member.state.phase)},
              {"generation", member.state.generation},
              {"ready", member.state.ReadyFor(view.generation.number)},
              {"handled", member.state.handled},
              {"pause_ms", member.state.pause_ms},
              {"slots", partition < 0 ? 0 : assignment.SlotsOf(partition).size()}};
    if (partition >= 0) json["partition"] = partition;
    if (member.state.Alive() && member.record.due) {
      json["heartbeat_due_at"] = Ms(*member.record.due);
    }
    if (!member.state.error.empty()) json["error"] = member.state.error;
    if (const std::string why = WhyMember(view, id, member.state); !why.empty()) json["why"] = why;
    AppendMember(members, id, std::move(json));
  }
  return members;
}

Json AssignmentOf(const replica::Assignment& assignment) {
  Json owners = Json::array();
  for (const int partition : assignment.owners) {
    const bool owned = partition >= 0 && partition < static_cast<int>(assignment.members.size());
    owners.push_back(owned ? assignment.members[static_cast<size_t>(partition)] : "");
  }
  return owners;
}

std::string WhyProjection(const replica::SetView& view, const replica::InstanceStatus& instance) {
  if (instance.paused) return "paused by an operator";
  if (instance.held) return "stopped until versions are swapped";
  const std::string set = WhySet(view);
  if (!set.empty()) return "the set is not running: " + set;
  if (instance.serialized) return "its workers handle one batch at a time, because of deadlocks";
  return "";
}

Json ProjectionOf(const replica::SetStatus& status, const replica::InstanceStatus& instance,
                  int slots, const std::string& key, SeriesBook& series) {
  const auto count = static_cast<size_t>(slots);
  std::vector<int64_t> lag(count);
  std::vector<int64_t> lag_ms(count);
  std::vector<int64_t> position(count);
  for (const events::SlotLag& slot : instance.lags) {
    const auto place = static_cast<size_t>(slot.slot);
    if (place >= count) continue;
    lag[place] = slot.events;
    if (slot.oldest) lag_ms[place] = std::max<int64_t>(0, (status.now - *slot.oldest).count());
  }
  for (const replica::SlotState& slot : instance.slots) {
    if (static_cast<size_t>(slot.slot) < count)
      position[static_cast<size_t>(slot.slot)] = slot.position;
  }
  series.Add(key, {.at = status.now,
                   .totals = {{"handled", static_cast<double>(instance.handled)}},
                   .levels = {{"lag_events", static_cast<double>(instance.lag_events)},
                              {"lag_ms", static_cast<double>(instance.lag_time.count())}}});
  Json json{{"projection", instance.projection},
            {"version", instance.version},
            {"active", instance.active},
            {"paused", instance.paused},
            {"handled", instance.handled},
            {"skipped", instance.skipped},
            {"definition", instance.definition},
            {"parked_events", instance.parked_events},
            {"lag_events", instance.lag_events},
            {"lag_estimated", instance.lag_estimated},
            {"lag_ms", instance.lag_time.count()},
            {"slot_lag", lag},
            {"slot_lag_ms", lag_ms},
            {"slot_position", position},
            {"series", series.Columns(key)},
            {"parked", Json::object()}};
  if (const std::string why = WhyProjection(status.view, instance); !why.empty()) json["why"] = why;
  const auto slope = series.Slope(key, "lag_events");
  if (instance.lag_events == 0) {
    json["clear_ms"] = 0;
  } else if (slope && *slope < 0) {
    json["clear_ms"] =
        static_cast<int64_t>(1000.0 * static_cast<double>(instance.lag_events) / -*slope);
  }
  for (const replica::ParkedStream& stream : instance.parked) {
    AppendMember(json["parked"], stream.stream,
                 {{"events", stream.versions.size()},
                  {"error", stream.error},
                  {"slot", stream.slot},
                  {"replay", stream.replay}});
  }
  return json;
}

// A set without its file: its records name the projections, not how far they are.
void AddProjectionsWithoutFile(const replica::SetView& view, Json& json) {
  json["why_no_lag"] = "the set's file is not known: give it with --replica FILE";
  for (const std::string& name : view.generation.projections) {
    const auto desired = view.projections.find(name);
    const bool paused = desired != view.projections.end() && desired->second.paused;
    const int version = desired == view.projections.end() ? 1 : desired->second.active;
    AppendMember(
        json["projections"], name,
        {{"projection", name}, {"version", version}, {"active", true}, {"paused", paused}});
  }
}

Json CommandsFor(const SiteReplica* replica) {
  const std::string file = replica == nullptr ? "FILE" : Quoted(replica->path);
  return {CommandLine("Show it", "muster replica status " + file + " --slots"),
          CommandLine("Limit its workers", "muster replica scale " + file + " N"),
          CommandLine("Pause a projection", "muster replica pause " + file + " NAME"),
          CommandLine("Retry parked streams", "muster replica replay " + file + " NAME")};
}

Json ActionsFor(const SiteStore& store, const std::string& set, bool has_file,
                const Json& projections) {
  Json actions{{"scale", Offer(ApiPath("stores", store.number, "replica-sets", set, "scale"),
                               Json::object(), "")}};
  for (const auto& [name, projection] : projections.items()) {
    if (!projection["active"].get<bool>()) continue;
    const auto offer = [&, &projected = name](const std::string& action, const std::string& why) {
      actions[action + " " + projected] = Offer(
          ApiPath("stores", store.number, "replica-sets", set, "projections", projected, action),
          Json::object(), why);
    };
    const bool paused = projection["paused"].get<bool>();
    offer("pause", paused ? "it is paused" : "");
    offer("resume", paused ? "" : "it is not paused");
    const bool parked = projection.contains("parked") && !projection["parked"].empty();
    const std::string why_not = parked ? "" : "nothing is parked";
    offer("replay", has_file ? why_not : "the set's file is not known");
  }
  return actions;
}

std::string KeyOf(const replica::InstanceStatus& instance) {
  return instance.projection + (instance.active ? "" : "@" + std::to_string(instance.version));
}

}  // namespace

void ReplicaViews::Notice(const std::string& key, const replica::SetView& view, WallTime now) {
  const MutexLock lock(mutex_);
  Seen& seen = seen_[key];
  const replica::Generation& generation = view.generation;
  const auto add = [&](WallTime at, std::string what, std::string cause) {
    seen.transitions.push_back({at, generation.number, std::move(what), std::move(cause)});
    if (seen.transitions.size() > kMaxTransitions) seen.transitions.pop_front();
  };
  std::map<std::string, replica::MemberState::Phase> members;
  for (const auto& [id, member] : view.members) {
    members[id] = member.state.phase;
    const auto before = seen.members.find(id);
    if (!seen.any || (before != seen.members.end() && before->second == member.state.phase)) {
      continue;
    }
    add(now,
        NameOf(id, member.state) + " is " + std::string(replica::PhaseName(member.state.phase)),
        member.state.error);
  }
  if (generation.number > 0 &&
      (!seen.any || generation.number != seen.generation || generation.phase != seen.phase)) {
    const bool made = !seen.any || generation.number != seen.generation;
    add(made && generation.since_ms > 0 ? WallTime(milliseconds(generation.since_ms)) : now,
        "generation " + std::to_string(generation.number) + " is " +
            std::string(PhaseOf(generation)),
        generation.reason);
  }
  seen.any = true;
  seen.generation = generation.number;
  seen.phase = generation.phase;
  seen.members = std::move(members);
}

Json ReplicaViews::TransitionsOf(const std::string& key) {
  const MutexLock lock(mutex_);
  Json list = Json::array();
  for (const Transition& transition : seen_[key].transitions) {
    Json json{{"at", Ms(transition.at)},
              {"generation", transition.generation},
              {"what", transition.what}};
    if (!transition.cause.empty()) json["cause"] = transition.cause;
    list.push_back(std::move(json));
  }
  return list;
}

Status ReplicaViews::AddSummaries(const Site& site, const SiteStore& store, Json& into) {
  MUSTER_ASSIGN(const std::vector<std::string> sets, replica::ListSets(*store.store));
  for (const std::string& set : sets) {
    auto summary = Summary(site, store, set);
    if (!summary && summary.error().code != Code::kCorrupt) return summary.error();
    // A damaged record does not hide the other sets.
    if (!summary) summary = UnreadableSet(store, set, summary.error());
    AppendMember(into, store.number + "/" + set, *std::move(summary));
  }
  return {};
}

Result<Json> ReplicaViews::Summary(const Site& site, const SiteStore& store,
                                   const std::string& set) {
  const SiteReplica* replica = site.FindReplica(store.number, set);
  if (replica == nullptr) {
    MUSTER_ASSIGN(replica::SetView view, replica::ReadSet(*store.store, set));
    MUSTER_ASSIGN(const WallTime now, store.store->Now());
    replica::ShowExpired(view, now);
    Notice(store.number + "/" + set, view, now);
    return SummaryOf(store, set, view);
  }
  MUSTER_ASSIGN(
      const replica::SetStatus status,
      replica::StatusOf(*store.store, *replica->log, *replica->model, set, replica->projections));
  Notice(store.number + "/" + set, status.view, status.now);
  Json summary = SummaryOf(store, set, status.view);
  AddLag(status, summary);
  return summary;
}

Result<Json> ReplicaViews::One(const Site& site, const SiteStore& store, const std::string& set,
                               SeriesBook& series) {
  const SiteReplica* replica = site.FindReplica(store.number, set);
  replica::SetStatus status;
  if (replica != nullptr) {
    MUSTER_ASSIGN(status, replica::StatusOf(*store.store, *replica->log, *replica->model, set,
                                            replica->projections));
  } else {
    MUSTER_ASSIGN(status.view, replica::ReadSet(*store.store, set));
    MUSTER_ASSIGN(status.now, store.store->Now());
    replica::ShowExpired(status.view, status.now);
    if (!status.view.Exists()) {
      return Error{Code::kNotFound, "replica set '" + set + "' not found in this store"};
    }
  }
  const replica::SetView& view = status.view;
  const std::string key = store.number + "/" + set;
  Notice(key, view, status.now);
  Json json = SummaryOf(store, set, view);
  if (replica != nullptr) AddLag(status, json);
  json["strategy"] = replica::kStrategies.NameOf(view.generation.strategy);
  if (view.scale) json["scale"] = *view.scale;
  const int slots = replica != nullptr ? replica->log->slots() : view.generation.slots;
  json["slots"] = slots;
  json["members"] = MembersOf(view);
  json["assignment"] = AssignmentOf(view.generation.assignment);
  json["projections"] = Json::object();
  for (const replica::InstanceStatus& instance : status.instances) {
    AppendMember(json["projections"], KeyOf(instance),
                 ProjectionOf(status, instance, slots, key + "/" + KeyOf(instance), series));
  }
  if (replica == nullptr) AddProjectionsWithoutFile(view, json);
  json["transitions"] = TransitionsOf(key);
  json["commands"] = CommandsFor(replica);
  json["actions"] = ActionsFor(store, set, replica != nullptr, json["projections"]);
  return json;
}

}  // namespace muster::serve
