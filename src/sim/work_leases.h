#pragma once

#include <map>
#include <string>

#include "sim/work_scene.h"

namespace muster::sim {

// Compares what holders believe about their leases with what the store granted: a holder stops in
// time, and is not stopped before.
class WorkLeases {
 public:
  explicit WorkLeases(WorkScene& scene) : scene_(scene), sim_(scene.sim) {}

  // The store has granted a lease, or renewed one.
  void Granted(const std::string& owner, const std::string& key, int64_t epoch, nanoseconds until);
  void Renewed(const store::Change& change, const store::Record& after, bool is_checkpoint);
  // The store went back in time, so epochs are granted again.
  void Forget();

  // A process has learned how long it holds the item.
  void Holds(const work::WorkItem& item);
  // The run is stopped, or goes on.
  void RunChanged(bool stopped);
  // A batch is sent to the sink.
  void Begins(const pipeline::Fence& fence);
  // Whether an item was stopped during its lease.
  bool WasStopped(const work::WorkItem& item, const Error* why) const;
  // A change is sent to the store. False: its lease has ended.
  bool Sends(const store::Change& change);

 private:
  struct HeldUntil {
    nanoseconds deadline{0};
    int faults_at_late_send = -1;
    nanoseconds believed{0};     // the deadline as known to its holder
    bool lapsed = false;         // it passed before the holder learned of a later one
    int stop_at_checkpoint = 0;  // the stop of the run that its last one was in; 0: none
  };

  std::string Of(const pipeline::Fence& fence) const;

  WorkScene& scene_;
  Simulation& sim_;
  std::map<std::string, HeldUntil> held_;
  int stops_ = 0;  // of the run, so far
  bool is_stopped_ = false;
  std::map<std::string, nanoseconds> lasts_;  // end of each lease, as granted by the store
};

}  // namespace muster::sim
