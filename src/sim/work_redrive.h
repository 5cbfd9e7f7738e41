#pragma once

#include <stop_token>

#include "sim/work_scene.h"

namespace muster::sim {

// Users who redrive the dead letters of the run once it is finished and the sink takes the
// documents that it refused. What they redrive is read from a real file: that is its content then.
class WorkRedrive {
 public:
  explicit WorkRedrive(WorkScene& scene) : scene_(scene), sim_(scene.sim) {}

  // A process. Ends when nothing is left to redrive.
  void Run(Env& env, std::stop_token stop);

  // All letters were redriven.
  bool IsDone() const { return is_done_; }

 private:
  bool TryOnce(const std::string& path, Env& env, const std::stop_token& stop);

  WorkScene& scene_;
  Simulation& sim_;
  bool is_done_ = false;
  int under_way_ = 0;  // begun and not ended
};

}  // namespace muster::sim
