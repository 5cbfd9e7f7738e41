#include "serve/series.h"

#include <algorithm>
#include <cmath>

#include "core/mutex.h"

namespace muster::serve {
namespace {

constexpr size_t kMaxPoints = 300;
constexpr size_t kMaxSeries = 1'000;
constexpr std::chrono::milliseconds kBetween(1'000);
constexpr std::chrono::seconds kSlopeOver(60);
constexpr std::chrono::seconds kSlopeLeast(2);

double Seconds(WallTime from, WallTime to) {
  return std::chrono::duration<double>(to - from).count();
}

double LevelOf(const SeriesBook::Point& point, const std::string& level) {
  for (const auto& [name, amount] : point.levels) {
    if (name == level) return amount;
  }
  return 0;
}

}  // namespace

void SeriesBook::Add(const std::string& series, const Point& point) {
  const MutexLock lock(mutex_);
  if (series_.size() >= kMaxSeries && !series_.contains(series)) series_.clear();
  std::deque<Point>& points = series_[series];
  if (!points.empty() && point.at - points.back().at < kBetween) return;
  points.push_back(point);
  if (points.size() > kMaxPoints) points.pop_front();
}

Json SeriesBook::Columns(const std::string& series) const {
  const MutexLock lock(mutex_);
  Json columns{{"at", Json::array()}};
  const auto found = series_.find(series);
  if (found == series_.end()) return columns;
  const std::deque<Point>& points = found->second;
  for (size_t i = 1; i < points.size(); ++i) {
    const Point& before = points[i - 1];
    const Point& now = points[i];
    columns["at"].push_back(now.at.time_since_epoch().count());
    for (size_t k = 0; k < std::min(now.totals.size(), before.totals.size()); ++k) {
      const double rate =
          (now.totals[k].second - before.totals[k].second) / Seconds(before.at, now.at);
      columns[now.totals[k].first + "_per_second"].push_back(std::round(std::max(0.0, rate)));
    }
    // A level that was not measured yet is 0: all columns have the same length.
    for (const auto& [name, last] : points.back().levels) {
      columns[name].push_back(std::round(LevelOf(now, name)));
    }
  }
  return columns;
}

std::optional<double> SeriesBook::Slope(const std::string& series, const std::string& level) const {
  const MutexLock lock(mutex_);
  const auto found = series_.find(series);
  if (found == series_.end() || found->second.empty()) return std::nullopt;
  const std::deque<Point>& points = found->second;
  const Point& last = points.back();
  const Point* first = &last;
  for (const Point& point : points) {
    if (last.at - point.at > kSlopeOver) continue;
    first = &point;
    break;
  }
  if (last.at - first->at < kSlopeLeast) return std::nullopt;
  return (LevelOf(last, level) - LevelOf(*first, level)) / Seconds(first->at, last.at);
}

}  // namespace muster::serve
