#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "events/events.h"
#include "muster/events.h"
#include "replica/replica.h"
#include "sim/faulty_wire.h"
#include "sim/simulation.h"

namespace muster::sim {

// An in-memory event log behind a faulty wire. Appends are made by the world and never fail; they
// may commit late, and it may be restored from a backup. No wrapper: a call that was forwarded
// would get past the wire.
class SimEventLog final : public events::EventLog {
 public:
  SimEventLog(Simulation& sim, int slots);
  ~SimEventLog() override;

  int slots() const override { return truth_->slots(); }
  Result<std::vector<int64_t>> Append(std::span<const events::StreamAppend> appends) override;
  Result<std::vector<events::Event>> ReadStream(std::string_view stream, int64_t after,
                                                int limit) override;
  Result<events::EventPage> ReadAll(int64_t after, int limit) override;
  Result<events::EventPage> Read(std::span<const events::SlotPosition> from, int limit) override;
  Result<int64_t> Last() override { return truth_->Last(); }
  Result<std::vector<events::EventMark>> MarksAt(std::span<const int64_t> positions) override;
  Result<std::vector<events::SlotLag>> Lag(std::span<const events::SlotPosition> from) override;
  void Wait(milliseconds timeout, std::stop_token stop) override;

  events::MemoryLog& Truth() { return *truth_; }

  // Appends in a transaction that commits later, or when the stream is appended to again.
  void AppendLate(const events::StreamAppend& append, nanoseconds delay);

  // Keeps its first events only, after it could not be reached for a while.
  void GoBackTo(int64_t kept, nanoseconds away);

 private:
  class World;

  void CommitOf(const std::string& stream);

  Simulation& sim_;
  FaultyWire wire_;
  std::unique_ptr<World> world_;
  std::unique_ptr<events::MemoryLog> truth_;
  std::map<std::string, int64_t> open_;  // transactions, by stream
};

// The world's view of a read model. Every function is optional.
struct ReadModelObserver {
  std::function<void(const replica::Instance& instance, int64_t generation,
                     std::span<const int> slots)>
      taken_over;
  // `before` contains the stored state of the moving slots. `sender` is the sending process.
  std::function<void(const replica::Instance& instance, const replica::ReadModelProgress& progress,
                     const std::vector<replica::MemoryReadModel::Statement>& statements,
                     const std::string& sender, bool applied)>
      committed;
  std::function<void()> refused;  // a process could not reach it
  std::function<void(const replica::Instance& instance)> forgotten;
  std::function<void(const replica::Instance& instance)> reset;
};

// An in-memory read model behind its own faulty wire.
class SimReadModel final : public replica::ReadModel {
 public:
  SimReadModel(Simulation& sim, ReadModelObserver observer);

  Result<std::vector<replica::SlotState>> TakeOver(const replica::Instance& instance,
                                                   int64_t generation,
                                                   std::span<const int> slots) override;
  Result<std::unique_ptr<replica::Transaction>> Begin() override { return truth_.Begin(); }
  Status Commit(replica::Transaction& transaction, const replica::Instance& instance,
                const replica::ReadModelProgress& progress) override;
  Status Commit(replica::Transaction& transaction) override;
  Status Swap(replica::Transaction& transaction, const replica::Instance& from, int to,
              int slots) override;
  Status SkipParked(const replica::Instance& instance, const replica::ParkedEvent& event) override;
  Result<std::vector<replica::SlotState>> Slots(const replica::Instance& instance) override;
  Result<int64_t> HighestGeneration(const std::string& set) override;
  Result<std::vector<replica::ParkedStream>> Parked(const replica::Instance& instance,
                                                    std::span<const int> slots) override;
  Result<int64_t> RequestReplay(const replica::Instance& instance,
                                const std::string& stream) override;
  Status Put(replica::Transaction& transaction, const replica::Instance& instance,
             std::span<const events::SlotPosition> slots, bool forget) override;
  Status Forget(replica::Transaction& transaction, const replica::Instance& instance,
                bool unless_swapped_in) override;

  replica::MemoryReadModel& Truth() { return truth_; }

 private:
  template <class T>
  Result<T> Call(const std::string& what, bool writes, std::function<Result<T>(bool late)> apply);

  Simulation& sim_;
  FaultyWire wire_;
  ReadModelObserver observer_;
  replica::MemoryReadModel truth_;
};

}  // namespace muster::sim
