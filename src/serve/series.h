#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/mutex.h"
#include "muster/env.h"

namespace muster::serve {

// Values over time, sampled when they are read: at most one point a second, and the last 300.
// Thread-safe.
class SeriesBook {
 public:
  // A point of the series of a name. `totals` only grow, and their rate is kept, as
  // NAME_per_second; `levels` are kept as they are.
  struct Point {
    WallTime at{};
    std::vector<std::pair<std::string, double>> totals = {};
    std::vector<std::pair<std::string, double>> levels = {};
  };
  void Add(const std::string& series, const Point& point);

  // {"at": [...], NAME: [...]}, oldest first.
  Json Columns(const std::string& series) const;

  // How a level has changed per second over the last minute; none: not known yet.
  std::optional<double> Slope(const std::string& series, const std::string& level) const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::deque<Point>> series_ GUARDED_BY(mutex_);
};

}  // namespace muster::serve
