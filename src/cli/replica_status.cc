#include <algorithm>

#include "cli/exit_codes.h"
#include "cli/replica_context.h"
#include "cli/table.h"
#include "core/json.h"

namespace muster::cli {
namespace {

std::string Seconds(milliseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(time.count()) / 1000.0);
  return text;
}

std::string About(int64_t events, bool estimated) {
  return (estimated ? "~" : "") + std::to_string(events);
}

std::string StateOf(const replica::InstanceStatus& instance) {
  std::string state = instance.paused ? "paused" : "running";
  if (instance.held) state = "held for a swap";
  if (!instance.active) state += ", not active";
  return state;
}

Json WorkersOf(const replica::SetView& view) {
  Json workers = Json::array();
  for (const auto& [id, member] : view.members) {
    Json worker{{"worker", id},
                {"state", replica::PhaseName(member.state.phase)},
                {"generation", member.state.generation},
                {"partition", view.generation.assignment.PartitionOf(id)},
                {"handled", member.state.handled},
                {"pause_ms", member.state.pause_ms}};
    if (!member.state.error.empty()) worker["error"] = member.state.error;
    workers.push_back(std::move(worker));
  }
  return workers;
}

Json ParkedOf(const replica::InstanceStatus& instance) {
  Json streams = Json::array();
  for (const replica::ParkedStream& stream : instance.parked) {
    Json parked{{"stream", stream.stream},
                {"state", stream.replay ? "replaying" : "parked"},
                {"events", stream.versions.size()},
                {"error", stream.error}};
    const auto first = instance.parked_at.find(stream.stream);
    if (first != instance.parked_at.end()) parked["position"] = first->second;
    streams.push_back(std::move(parked));
  }
  return streams;
}

Json SlotsOf(const replica::InstanceStatus& instance, WallTime now) {
  Json slots = Json::array();
  for (const events::SlotLag& lag : instance.lags) {
    Json slot{{"slot", lag.slot}, {"position", 0}, {"generation", 0}, {"lag_events", lag.events}};
    for (const replica::SlotState& state : instance.slots) {
      if (state.slot != lag.slot) continue;
      slot["position"] = state.position;
      slot["generation"] = state.generation;
    }
    if (lag.oldest) slot["lag_ms"] = (now - *lag.oldest).count();
    slots.push_back(std::move(slot));
  }
  return slots;
}

Json ProjectionsOf(const replica::SetStatus& status) {
  Json projections = Json::array();
  for (const replica::InstanceStatus& instance : status.instances) {
    projections.push_back(Json{{"projection", instance.projection},
                               {"version", instance.version},
                               {"active", instance.active},
                               {"paused", instance.paused},
                               {"held", instance.held},
                               {"serialized", instance.serialized},
                               {"definition", instance.definition},
                               {"skipped", instance.skipped},
                               {"handled", instance.handled},
                               {"parked_events", instance.parked_events},
                               {"lag_events", instance.lag_events},
                               {"lag_estimated", instance.lag_estimated},
                               {"lag_ms", instance.lag_time.count()},
                               {"log_is_whole", instance.same_log.has_value()},
                               {"log_warning", instance.log_warning},
                               {"parked", ParkedOf(instance)},
                               {"slots", SlotsOf(instance, status.now)}});
  }
  return projections;
}

Json ToJson(const replica::SetStatus& status, const std::string& set) {
  const replica::Generation& generation = status.view.generation;
  Json json{{"set", set},
            {"generation", generation.number},
            {"phase", replica::PhaseName(generation.phase)},
            {"partitions", generation.assignment.members.size()},
            {"reason", generation.reason},
            {"alive", replica::CountAlive(status.view)},
            {"workers", WorkersOf(status.view)},
            {"projections", ProjectionsOf(status)}};
  if (status.view.scale) json["scale"] = *status.view.scale;
  return json;
}

void PrintSet(const replica::SetStatus& status, const std::string& set, Context& context) {
  const replica::Generation& generation = status.view.generation;
  if (status.view.set_record.version == 0) {
    context.out << "set " << set << " has not run yet\n\n";
    return;
  }
  context.out << "set " << set << ", generation " << generation.number << ", "
              << replica::PhaseName(generation.phase) << ", "
              << generation.assignment.members.size() << " partitions";
  if (status.view.scale) context.out << ", scaled to at most " << *status.view.scale;
  context.out << "\n";
  if (replica::CountAlive(status.view) == 0) {
    context.out << "no worker is alive: start one with 'muster replica run'\n";
  }
  context.out << "\n";
  Table workers({{"WORKER"},
                 {"STATE"},
                 {"PARTITION", Table::Align::kRight},
                 {"HANDLED", Table::Align::kRight},
                 {"PAUSE", Table::Align::kRight},
                 {"TROUBLE"}});
  for (const auto& [id, member] : status.view.members) {
    const int partition = generation.assignment.PartitionOf(id);
    const bool dead = member.state.phase == replica::MemberState::Phase::kDead;
    workers.AddRow(
        {{id},
         {std::string(replica::PhaseName(member.state.phase)), dead ? Style::kBad : Style::kNone},
         {partition < 0 ? "" : std::to_string(partition)},
         {std::to_string(member.state.handled)},
         {Seconds(milliseconds(member.state.pause_ms))},
         {member.state.error}});
  }
  workers.Print(context.out, context.color);
  context.out << '\n';
  for (const std::string& projection : status.view.Serialized()) {
    context.out << "workers of " << projection << " are serialized because of deadlocks\n\n";
  }
}

void PrintProjections(const replica::SetStatus& status, Context& context) {
  Table table({{"PROJECTION"},
               {"VERSION", Table::Align::kRight},
               {"STATE"},
               {"HANDLED", Table::Align::kRight},
               {"BEHIND", Table::Align::kRight},
               {"BY", Table::Align::kRight},
               {"PARKED", Table::Align::kRight},
               {"SKIPPED", Table::Align::kRight},
               {"DEFINITION"}});
  for (const replica::InstanceStatus& instance : status.instances) {
    table.AddRow({{instance.projection},
                  {std::to_string(instance.version)},
                  {StateOf(instance), instance.paused ? Style::kWarn : Style::kNone},
                  {std::to_string(instance.handled)},
                  {About(instance.lag_events, instance.lag_estimated)},
                  {Seconds(instance.lag_time)},
                  {std::to_string(instance.parked_events),
                   instance.parked_events > 0 ? Style::kBad : Style::kNone},
                  {std::to_string(instance.skipped)},
                  {instance.definition}});
  }
  table.Print(context.out, context.color);
}

void PrintParked(const replica::SetStatus& status, Context& context) {
  Table parked({{"PARKED STREAM"},
                {"PROJECTION"},
                {"VERSION", Table::Align::kRight},
                {"STATE"},
                {"EVENTS", Table::Align::kRight},
                {"POSITION", Table::Align::kRight},
                {"ERROR"}});
  bool any = false;
  for (const replica::InstanceStatus& instance : status.instances) {
    for (const replica::ParkedStream& stream : instance.parked) {
      any = true;
      const auto first = instance.parked_at.find(stream.stream);
      parked.AddRow({{stream.stream},
                     {instance.projection},
                     {std::to_string(instance.version)},
                     {stream.replay ? "replaying" : "parked"},
                     {std::to_string(stream.versions.size())},
                     {first == instance.parked_at.end() ? "" : std::to_string(first->second)},
                     {stream.error}});
    }
  }
  if (!any) return;
  context.out << '\n';
  parked.Print(context.out, context.color);
}

void PrintSlots(const replica::SetStatus& status, Context& context) {
  context.out << '\n';
  Table by_slot({{"PROJECTION"},
                 {"SLOT", Table::Align::kRight},
                 {"POSITION", Table::Align::kRight},
                 {"GENERATION", Table::Align::kRight},
                 {"BEHIND", Table::Align::kRight},
                 {"BY", Table::Align::kRight}});
  for (const replica::InstanceStatus& instance : status.instances) {
    for (const replica::SlotState& slot : instance.slots) {
      events::SlotLag lag;
      for (const events::SlotLag& found : instance.lags) {
        if (found.slot == slot.slot) lag = found;
      }
      by_slot.AddRow({{instance.projection},
                      {std::to_string(slot.slot)},
                      {std::to_string(slot.position)},
                      {std::to_string(slot.generation)},
                      {About(lag.events, lag.estimated)},
                      {lag.oldest ? Seconds(status.now - *lag.oldest) : ""}});
    }
  }
  by_slot.Print(context.out, context.color);
}

// Where the file differs from what runs.
void PrintOtherDefinitions(const replica::SetStatus& status, const replica::ReplicaFile& file,
                           Context& context) {
  for (const replica::InstanceStatus& instance : status.instances) {
    const auto projection = file.Find(instance.projection);
    if (!projection || !instance.active || instance.definition.empty()) continue;
    const std::string own = replica::DefinitionHash(**projection);
    if (own.empty() || own == instance.definition) continue;
    // After a rollback.
    const auto built =
        std::find_if(status.instances.begin(), status.instances.end(),
                     [&](const replica::InstanceStatus& other) {
                       return other.projection == instance.projection && other.definition == own;
                     });
    context.out << "\nprojection " << instance.projection << " is run by definition "
                << instance.definition << "; this file has " << own << ", which ";
    if (built == status.instances.end()) {
      context.out << "'muster replica rebuild' builds\n";
    } else {
      context.out << "version " << built->version << " has: 'muster replica rebuild' makes it "
                  << "active\n";
    }
  }
}

}  // namespace

Result<int> ShowReplicaStatus(const ReplicaCommandOptions& options, Context& context) {
  MUSTER_ASSIGN(OpenReplica open, OpenReplica::Open(options, context));
  const std::string& set = open.file.options.set;
  std::vector<std::string> names;
  for (const auto& projection : open.file.projections) names.push_back(projection->name());
  MUSTER_ASSIGN(const replica::SetStatus status,
                replica::StatusOf(*open.store, *open.log, *open.model, set, names));
  if (context.json) {
    context.out << ToJsonText(ToJson(status, set)) << '\n';
    return kDone;
  }
  PrintSet(status, set, context);
  PrintProjections(status, context);
  PrintParked(status, context);
  if (options.slots) PrintSlots(status, context);
  PrintOtherDefinitions(status, open.file, context);
  if (const Status whole = replica::CheckSameLog(status); !whole) {
    context.out << '\n' << whole.error().message << "; " << whole.error().hint << '\n';
  }
  for (const replica::InstanceStatus& instance : status.instances) {
    if (!instance.log_warning.empty()) context.out << "\nwarning: " << instance.log_warning << '\n';
  }
  return kDone;
}

}  // namespace muster::cli
