#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "muster/result.h"
#include "sim/faulty_wire.h"

namespace muster::sim {

// A target that keeps, for every item, the highest epoch it has seen and the rows, changed
// together: a write of an older epoch fails, and one that does not start where the rows end fails,
// too.
class FencedSink {
 public:
  // Told about every request when it reaches the sink.
  using Observer = std::function<void(const std::string& item, int64_t epoch, bool late)>;

  FencedSink(Simulation& sim, Observer observer) : wire_(sim), observer_(std::move(observer)) {}

  // Closes the sink to older epochs of this item; the answer is how many rows are there.
  Result<int64_t> Open(const std::string& item, int64_t epoch);

  // Adds the rows [from, to).
  Status Append(const std::string& item, int64_t epoch, int64_t from, int64_t to);

  const std::vector<int64_t>& Rows(const std::string& item) { return items_[item].rows; }

 private:
  struct Item {
    int64_t epoch = 0;
    std::vector<int64_t> rows;
  };

  FaultyWire wire_;
  Observer observer_;
  std::map<std::string, Item> items_;
};

}  // namespace muster::sim
