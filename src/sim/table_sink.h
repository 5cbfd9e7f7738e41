#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "sim/faulty_wire.h"

namespace muster::sim {

// The world's view of a sink's traffic.
struct SinkObserver {
  // A holder's request has reached the sink; `refused`: it had no effect, because it came from an
  // older holder.
  std::function<void(const pipeline::Fence& fence, bool late, bool refused, bool empty)> reached;
  // A holder begins to write a batch.
  std::function<void(const pipeline::Fence& fence)> begins;
};

// A target like a database: rows, and for every item the highest epoch seen with its progress,
// changed together. A write counts only if the progress is what its writer believes.
struct TableTarget {
  struct Item {
    pipeline::Fence fence;  // of the last holder to open it
    bool opened = false;
    bool sealed = false;
    std::optional<pipeline::Progress> progress;
  };

  TableTarget(Simulation& simulation, SinkObserver sink_observer)
      : sim(simulation), wire(simulation), observer(std::move(sink_observer)) {}

  Result<Item> Open(const pipeline::Fence& fence);
  // Adds rows if the progress is still `before`; returns the current one.
  Result<std::optional<pipeline::Progress>> Append(const std::string& collection,
                                                   const pipeline::Fence& fence,
                                                   const std::vector<std::string>& ids,
                                                   const std::optional<pipeline::Progress>& before,
                                                   const pipeline::Progress& after, bool late);
  Result<std::optional<pipeline::Progress>> Seal(const pipeline::Fence& fence, bool late);

  Simulation& sim;
  FaultyWire wire;
  SinkObserver observer;
  bool cured = false;  // takes the documents that it refused
  // Its writers retry until their deadline; otherwise the first failure counts.
  bool patient = true;
  std::map<std::string, std::vector<std::string>> rows;  // by collection: ids, as they came
  std::map<std::string, Item> items;

 private:
  // kLeaseLost: a later holder has opened the item.
  Status Admit(const pipeline::Fence& fence, bool late, bool empty);
};

// One process's access to it. Documents whose id ends with '!' are permanently refused.
class TableSink final : public pipeline::Sink {
 public:
  TableSink(TableTarget& target, Env& env, nanoseconds pace)
      : target_(target), env_(env), pace_(pace) {}

  Result<std::vector<pipeline::TargetChange>> Prepare(const pipeline::Collection& collection,
                                                      bool evaluate) override;
  Result<std::unique_ptr<pipeline::Writer>> Open(const std::string& collection,
                                                 const pipeline::Fence& fence) override;

 private:
  class TableWriter;

  TableTarget& target_;
  Env& env_;
  const nanoseconds pace_;
};

}  // namespace muster::sim
