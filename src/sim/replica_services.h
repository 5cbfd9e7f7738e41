#pragma once

#include <functional>
#include <memory>

#include "muster/events.h"
#include "replica/memory_read_model.h"
#include "sim/faulty_wire.h"
#include "sim/simulation.h"

namespace muster::sim {

// An in-memory event log behind a faulty wire. Appends are made by the world and never fail.
class SimEventLog final : public EventLog {
 public:
  SimEventLog(Simulation& sim, int slots);
  ~SimEventLog() override;

  int slots() const override { return truth_->slots(); }
  Result<std::vector<int64_t>> Append(std::span<const StreamAppend> appends) override;
  Result<std::vector<Event>> ReadStream(std::string_view stream, int64_t after, int limit) override;
  Result<EventPage> ReadAll(int64_t after, int limit) override;
  Result<EventPage> Read(std::span<const SlotPosition> from, int limit) override;
  Result<int64_t> Last() override { return truth_->Last(); }
  Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) override;
  void Wait(milliseconds timeout, std::stop_token stop) override;

  EventLog& Truth() { return *truth_; }

 private:
  class World;

  Simulation& sim_;
  FaultyWire wire_;
  std::unique_ptr<World> world_;
  std::unique_ptr<EventLog> truth_;
};

// The world's view of a read model. Every function is optional.
struct ReadModelObserver {
  std::function<void(const Instance& instance, int64_t generation, std::span<const int> slots)>
      taken_over;
  // `before` contains the stored state of the moving slots. `sender` is the sending process.
  std::function<void(const Instance& instance, const ReadModelProgress& progress,
                     const std::vector<MemoryReadModel::Statement>& statements,
                     const std::string& sender, bool applied)>
      committed;
  std::function<void()> refused;  // a process could not reach it
  std::function<void(const Instance& instance)> forgotten;
};

// An in-memory read model behind its own faulty wire.
class SimReadModel final : public ReadModel {
 public:
  SimReadModel(Simulation& sim, ReadModelObserver observer);

  Result<std::vector<SlotState>> TakeOver(const Instance& instance, int64_t generation,
                                          std::span<const int> slots) override;
  Result<std::unique_ptr<Transaction>> Begin() override { return truth_.Begin(); }
  Status Commit(Transaction& transaction, const Instance& instance,
                const ReadModelProgress& progress) override;
  Status Commit(Transaction& transaction) override;
  Status Swap(Transaction& transaction, const Instance& from, int to, int slots) override;
  Status SkipParked(const Instance& instance, const ParkedEvent& event) override;
  Result<std::vector<SlotState>> Slots(const Instance& instance) override;
  Result<int64_t> HighestGeneration(const std::string& set) override;
  Result<std::vector<ParkedStream>> Parked(const Instance& instance,
                                           std::span<const int> slots) override;
  Result<int64_t> RequestReplay(const Instance& instance, const std::string& stream) override;
  Status Put(Transaction& transaction, const Instance& instance,
             std::span<const SlotPosition> slots, bool forget) override;
  Status Forget(Transaction& transaction, const Instance& instance,
                bool unless_swapped_in) override;

  MemoryReadModel& Truth() { return truth_; }

 private:
  template <class T>
  Result<T> Call(const std::string& what, bool writes, std::function<Result<T>(bool late)> apply);

  Simulation& sim_;
  FaultyWire wire_;
  ReadModelObserver observer_;
  MemoryReadModel truth_;
};

}  // namespace muster::sim
