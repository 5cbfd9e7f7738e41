#include "serve/state_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "core/metrics.h"
#include "muster/states.h"
#include "serve/site.h"

namespace muster::serve {
namespace {

double NumberIn(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

std::string TextIn(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

void AddWork(const Json& run, Metrics& metrics) {
  const Metrics::Labels labels{{"store", TextIn(run, "store")}, {"run", TextIn(run, "run")}};
  for (const char* state : {"done", "held", "waiting", "quarantined", "unreadable"}) {
    Metrics::Labels with_state = labels;
    with_state["state"] = state;
    metrics.GetGauge("muster_work_items", "Work items of a run by state", with_state)
        .Set(NumberIn(run, state));
  }
  for (const char* outcome : {"written", "skipped", "failed"}) {
    Metrics::Labels with_outcome = labels;
    with_outcome["outcome"] = outcome;
    metrics
        .GetGauge("muster_work_documents", "Documents that a run has read, by outcome",
                  with_outcome)
        .Set(NumberIn(run["counts"], outcome));
  }
  metrics.GetGauge("muster_work_bytes", "Bytes of the documents that a run has read", labels)
      .Set(NumberIn(run["counts"], "bytes"));
  metrics.GetGauge("muster_work_docs_per_second", "Documents per second of a run's holders", labels)
      .Set(NumberIn(run, "docs_per_second"));
  if (run.contains("left_ms")) {
    metrics.GetGauge("muster_work_left_seconds", "Estimated time until a run is done", labels)
        .Set(NumberIn(run, "left_ms") / 1000);
  }
}

void AddReplica(const Json& set, Metrics& metrics) {
  const Metrics::Labels labels{{"store", TextIn(set, "store")}, {"set", TextIn(set, "set")}};
  metrics.GetGauge("muster_replica_generation", "Number of a set's generation", labels)
      .Set(NumberIn(set, "generation"));
  metrics.GetGauge("muster_replica_running", "Whether a set's generation runs", labels)
      .Set(TextIn(set, "phase") == replica::PhaseName(replica::Generation::Phase::kRunning) ? 1
                                                                                            : 0);
  metrics.GetGauge("muster_replica_workers", "Workers of a set that are alive", labels)
      .Set(NumberIn(set, "workers"));
  if (!set.contains("lag_events")) return;
  metrics.GetGauge("muster_replica_lag_events", "Events that a set has not handled yet", labels)
      .Set(NumberIn(set, "lag_events"));
  metrics.GetGauge("muster_replica_lag_seconds", "Age of the oldest of them", labels)
      .Set(NumberIn(set, "lag_ms") / 1000);
  metrics.GetGauge("muster_replica_parked_streams", "Streams that a set has parked", labels)
      .Set(NumberIn(set, "parked"));
}

}  // namespace

std::string StateMetrics(const Json& overview) {
  Metrics metrics;
  for (const auto& [number, store] : overview["stores"].items()) {
    metrics.GetGauge("muster_store_up", "Whether a store answers", {{"store", number}})
        .Set(store["reachable"].get<bool>() ? 1 : 0);
  }
  std::map<std::string, int> migrations;
  for (const RunStatus status :
       {RunStatus::kInProgress, RunStatus::kCompleted, RunStatus::kFailed, RunStatus::kCancelled}) {
    migrations.emplace(NameOf(status), 0);
  }
  int left = 0;
  for (const auto& [key, run] : overview["migrations"].items()) {
    ++migrations[TextIn(run, "status")];
    if (TextIn(run, "status") == NameOf(RunStatus::kInProgress) && run.contains("why")) ++left;
  }
  for (const auto& [status, count] : migrations) {
    metrics.GetGauge("muster_migrations", "Runs of plans by status", {{"status", status}})
        .Set(count);
  }
  metrics.GetGauge("muster_migrations_left", "Runs in progress without a process").Set(left);
  for (const auto& [key, run] : overview["work"].items()) AddWork(run, metrics);
  for (const auto& [key, set] : overview["replica_sets"].items()) AddReplica(set, metrics);
  metrics.GetGauge("muster_failures", "Tasks, items, streams and documents that have failed")
      .Set(NumberIn(overview, "failures_total"));
  metrics.GetGauge("muster_dead_letters", "Documents in the files of dead letters")
      .Set(NumberIn(overview, "dead_letters"));
  return metrics.Text();
}

std::string ProcessMetrics() {
  Metrics metrics;
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  metrics.GetCounter("process_cpu_seconds_total", "CPU time of this process")
      .Add(seconds(used.ru_utime) + seconds(used.ru_stime));
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  metrics.GetGauge("process_resident_memory_bytes", "Memory that this process has in use")
      .Set(static_cast<double>(pages * sysconf(_SC_PAGESIZE)));
  return metrics.Text();
}

}  // namespace muster::serve
