#include "cli/metered_events.h"

#include "core/log.h"
#include "core/mutex.h"

namespace muster::cli {
namespace {

const char* KindName(replica::ReplicaEvent::Kind kind) {
  switch (kind) {
    case replica::ReplicaEvent::Kind::kRegistered:
      return "registered";
    case replica::ReplicaEvent::Kind::kReady:
      return "ready";
    case replica::ReplicaEvent::Kind::kRunning:
      return "running";
    case replica::ReplicaEvent::Kind::kStandby:
      return "standby";
    case replica::ReplicaEvent::Kind::kReconfigured:
      return "reconfigured";
    case replica::ReplicaEvent::Kind::kParked:
      return "parked";
    case replica::ReplicaEvent::Kind::kLost:
      return "lost";
    case replica::ReplicaEvent::Kind::kTrouble:
      return "trouble";
    case replica::ReplicaEvent::Kind::kStopped:
      return "stopped";
  }
  return "other";
}

// Whether it starts a lasting stage and ends the previous one.
bool IsStage(replica::ReplicaEvent::Kind kind) {
  return kind != replica::ReplicaEvent::Kind::kReconfigured &&
         kind != replica::ReplicaEvent::Kind::kParked &&
         kind != replica::ReplicaEvent::Kind::kTrouble;
}

std::string StageName(replica::ReplicaEvent::Kind kind, int64_t generation) {
  const std::string number = std::to_string(generation);
  if (kind == replica::ReplicaEvent::Kind::kReady) return "barrier " + number;
  if (kind == replica::ReplicaEvent::Kind::kRunning) return "generation " + number;
  return KindName(kind);
}

const std::vector<double>& Bounds() {
  static const std::vector<double> kBounds{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
  return kBounds;
}

}  // namespace

MeteredEvents::MeteredEvents(std::string set, Metrics& metrics, net::Tracer& tracer, Env& env)
    : set_(std::move(set)),
      metrics_(metrics),
      tracer_(tracer),
      env_(env),
      barrier_(metrics.GetHistogram("muster_replica_barrier_seconds",
                                    "From ready to running in a generation", Bounds())),
      pause_(metrics.GetHistogram("muster_replica_pause_seconds", "How long slots had no owner",
                                  Bounds())) {}

void MeteredEvents::Take(const replica::ReplicaEvent& event) {
  metrics_
      .GetCounter("muster_replica_events_total", "Worker events, by kind",
                  {{"kind", KindName(event.kind)}})
      .Add();
  for (const auto& [slot, length] : event.pauses) {
    pause_.Observe(std::chrono::duration<double>(length).count());
  }
  Log(Level::kInfo, "replica event",
      {{"set", set_},
       {"worker", event.worker},
       {"generation", event.generation},
       {"event", std::string_view(KindName(event.kind))},
       {"projection", event.projection},
       {"why", event.error}});
  const std::optional<Stage> before = Enter(event);
  if (!before) return;
  if (before->kind == replica::ReplicaEvent::Kind::kReady &&
      event.kind == replica::ReplicaEvent::Kind::kRunning) {
    barrier_.Observe(std::chrono::duration<double>(env_.MonoNow() - before->since).count());
  }
  Trace(event, *before);
}

// The stage that ends here; for a momentary event, a span without duration.
std::optional<MeteredEvents::Stage> MeteredEvents::Enter(const replica::ReplicaEvent& event) {
  const Stage now{event.kind, event.generation, env_.MonoNow(), env_.WallNow()};
  if (!IsStage(event.kind)) {
    if (event.error.empty()) return std::nullopt;
    return now;
  }
  const MutexLock lock(mutex_);
  const auto [stage, first] = stages_.emplace(event.worker, now);
  if (first) return std::nullopt;
  const Stage before = std::exchange(stage->second, now);
  if (event.kind == replica::ReplicaEvent::Kind::kStopped) stages_.erase(stage);
  return before;
}

void MeteredEvents::Trace(const replica::ReplicaEvent& event, const Stage& stage) {
  const std::string name = StageName(stage.kind, stage.generation);
  const std::string start = std::to_string(stage.since_wall.time_since_epoch().count());
  tracer_.Add({.name = name,
               .trace = set_,
               .itself = event.worker + " " + name + " " + start,
               .start = stage.since_wall,
               .end = env_.WallNow(),
               .attributes = {{"muster.set", set_},
                              {"muster.worker", event.worker},
                              {"muster.generation", std::to_string(stage.generation)},
                              {"muster.projection", event.projection},
                              {"muster.outcome", KindName(event.kind)}},
               .error = event.error});
}

}  // namespace muster::cli
