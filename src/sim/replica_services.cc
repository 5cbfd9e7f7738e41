#include "sim/replica_services.h"

namespace muster::sim {

// Virtual time, and ids from the seed.
class SimEventLog::World final : public Env {
 public:
  explicit World(Simulation& sim) : sim_(sim) {}
  WallTime WallNow() override { return WallTime(std::chrono::floor<milliseconds>(sim_.now())); }
  MonoTime MonoNow() override { return MonoTime(sim_.now()); }
  bool Sleep(nanoseconds /*duration*/, std::stop_token /*stop*/) override { return true; }
  uint64_t Random() override { return sim_.random().Next(); }

 private:
  Simulation& sim_;
};

SimEventLog::SimEventLog(Simulation& sim, int slots)
    : sim_(sim),
      wire_(sim),
      world_(std::make_unique<World>(sim)),
      truth_(events::NewMemoryEventLog(*world_, slots)) {}

SimEventLog::~SimEventLog() = default;

Result<std::vector<int64_t>> SimEventLog::Append(std::span<const events::StreamAppend> appends) {
  for (const events::StreamAppend& append : appends) CommitOf(append.stream);
  return truth_->Append(appends);
}

void SimEventLog::AppendLate(const events::StreamAppend& append, nanoseconds delay) {
  CommitOf(append.stream);
  const int64_t transaction = truth_->Begin({&append, 1}).value();
  open_[append.stream] = transaction;
  sim_.After(delay, [this, stream = append.stream, transaction] {
    const auto found = open_.find(stream);
    if (found != open_.end() && found->second == transaction) CommitOf(stream);
  });
}

// Its transaction has locked the stream.
void SimEventLog::CommitOf(const std::string& stream) {
  const auto found = open_.find(stream);
  if (found == open_.end()) return;
  sim_.Note("the transaction at position " + std::to_string(found->second) + " commits");
  if (truth_->Last().value() > found->second)
    sim_.Sometimes("75 an event becomes visible after later ones");
  truth_->Commit(found->second);
  open_.erase(found);
}

void SimEventLog::GoBackTo(int64_t kept, nanoseconds away) {
  while (!open_.empty()) CommitOf(std::string(open_.begin()->first));
  const auto all = truth_->ReadAll(0, events::kMaxEventBatch).value().events;
  truth_ = events::NewMemoryEventLog(*world_, truth_->slots());
  for (const events::Event& event : all) {
    if (event.position > kept) break;
    const events::StreamAppend append{
        .stream = event.stream,
        .expected = events::kAnyVersion,
        .events = {{event.type, event.payload, event.metadata, event.id}}};
    static_cast<void>(truth_->Append({&append, 1}));
  }
  wire_.GoAway(away);
}

Result<std::vector<events::EventMark>> SimEventLog::MarksAt(std::span<const int64_t> positions) {
  const auto read = [this, positions = std::vector<int64_t>(positions.begin(), positions.end())](
                        bool) { return truth_->MarksAt(positions); };
  return wire_.Call<std::vector<events::EventMark>>("read marks", false, read);
}

Result<std::vector<events::Event>> SimEventLog::ReadStream(std::string_view stream, int64_t after,
                                                           int limit) {
  return wire_.Call<std::vector<events::Event>>(
      "read " + std::string(stream), false,
      [this, stream = std::string(stream), after, limit](bool) {
        return truth_->ReadStream(stream, after, limit);
      });
}

Result<events::EventPage> SimEventLog::ReadAll(int64_t after, int limit) {
  return wire_.Call<events::EventPage>(
      "read all", false, [this, after, limit](bool) { return truth_->ReadAll(after, limit); });
}

Result<events::EventPage> SimEventLog::Read(std::span<const events::SlotPosition> from, int limit) {
  return wire_.Call<events::EventPage>(
      "read slots", false,
      [this, from = std::vector<events::SlotPosition>(from.begin(), from.end()), limit](bool) {
        return truth_->Read(from, limit);
      });
}

Result<std::vector<events::SlotLag>> SimEventLog::Lag(std::span<const events::SlotPosition> from) {
  return truth_->Lag(from);
}

void SimEventLog::Wait(milliseconds timeout, std::stop_token stop) {
  if (!stop.stop_requested()) sim_.Pass(sim_.random().UpTo<int64_t, std::nano>(timeout));
}

SimReadModel::SimReadModel(Simulation& sim, ReadModelObserver observer)
    : sim_(sim), wire_(sim), observer_(std::move(observer)) {}

template <class T>
Result<T> SimReadModel::Call(const std::string& what, bool writes,
                             std::function<Result<T>(bool late)> apply) {
  auto answer = wire_.Call<T>("model: " + what, writes, std::move(apply));
  if (wire_.Away() && observer_.refused) observer_.refused();
  return answer;
}

Result<std::vector<replica::SlotState>> SimReadModel::TakeOver(const replica::Instance& instance,
                                                               int64_t generation,
                                                               std::span<const int> slots) {
  return Call<std::vector<replica::SlotState>>(
      "take over " + std::to_string(slots.size()) + " slots of " + instance.projection +
          ", generation " + std::to_string(generation),
      true,
      [this, instance, generation, slots = std::vector<int>(slots.begin(), slots.end())](bool) {
        auto taken = truth_.TakeOver(instance, generation, slots);
        if (taken && observer_.taken_over) observer_.taken_over(instance, generation, slots);
        return taken;
      });
}

Status SimReadModel::Commit(replica::Transaction& transaction, const replica::Instance& instance,
                            const replica::ReadModelProgress& progress) {
  std::string what = "commit " + instance.projection;
  for (const replica::SlotMove& move : progress.moves) {
    what += " " + std::to_string(move.slot) + ":" + std::to_string(move.from) + ".." +
            std::to_string(move.to) + "@" + std::to_string(move.generation);
  }
  return Call<void>(
      what, true,
      [this, instance, progress, sender = std::string(sim_.CurrentName()),
       statements =
           static_cast<replica::MemoryTransaction&>(transaction).statements](bool) -> Status {
        Status applied = truth_.Apply(statements, instance, progress);
        if (observer_.committed) {
          observer_.committed(instance, progress, statements, sender, applied.has_value());
        }
        return applied;
      });
}

Status SimReadModel::Commit(replica::Transaction& transaction) {
  return Call<void>(
      "commit", true,
      [this, statements = static_cast<replica::MemoryTransaction&>(transaction).statements](bool) {
        return truth_.Apply(statements, {}, {});
      });
}

Status SimReadModel::Swap(replica::Transaction& transaction, const replica::Instance& from, int to,
                          int slots) {
  return Call<void>("swap " + from.projection + " to " + std::to_string(to), true,
                    [this, from, to, slots,
                     statements = static_cast<replica::MemoryTransaction&>(transaction).statements](
                        bool) { return truth_.ApplySwap(statements, from, to, slots); });
}

Status SimReadModel::SkipParked(const replica::Instance& instance,
                                const replica::ParkedEvent& event) {
  return Call<void>("skip of " + event.stream, true,
                    [this, instance, event](bool) { return truth_.SkipParked(instance, event); });
}

Result<std::vector<replica::SlotState>> SimReadModel::Slots(const replica::Instance& instance) {
  return Call<std::vector<replica::SlotState>>(
      "slots", false, [this, instance](bool) { return truth_.Slots(instance); });
}

Result<int64_t> SimReadModel::HighestGeneration(const std::string& set) {
  return Call<int64_t>("highest generation", false,
                       [this, set](bool) { return truth_.HighestGeneration(set); });
}

Result<std::vector<replica::ParkedStream>> SimReadModel::Parked(const replica::Instance& instance,
                                                                std::span<const int> slots) {
  return Call<std::vector<replica::ParkedStream>>(
      "parked", false,
      [this, instance, slots = std::vector<int>(slots.begin(), slots.end())](bool) {
        return truth_.Parked(instance, slots);
      });
}

Result<int64_t> SimReadModel::RequestReplay(const replica::Instance& instance,
                                            const std::string& stream) {
  return Call<int64_t>("replay " + stream, true, [this, instance, stream](bool) {
    return truth_.RequestReplay(instance, stream);
  });
}

Status SimReadModel::Put(replica::Transaction& transaction, const replica::Instance& instance,
                         std::span<const events::SlotPosition> slots, bool forget) {
  Status put = truth_.Put(transaction, instance, slots, forget);
  if (put && forget && observer_.reset) observer_.reset(instance);
  return put;
}

Status SimReadModel::Forget(replica::Transaction& transaction, const replica::Instance& instance,
                            bool unless_swapped_in) {
  Status forgotten = truth_.Forget(transaction, instance, unless_swapped_in);
  if (forgotten && observer_.forgotten) observer_.forgotten(instance);
  return forgotten;
}

}  // namespace muster::sim
