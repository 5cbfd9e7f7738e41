#include <algorithm>
#include <map>

#include "core/condition.h"
#include "core/mutex.h"
#include "core/planted_bug.h"
#include "events/backends.h"
#include "events/event_rules.h"

namespace muster::events {
namespace {

class MemoryEventLog final : public MemoryLog {
 public:
  MemoryEventLog(Env& env, int slots, size_t read_bytes)
      : env_(env), slots_(slots), read_bytes_(read_bytes) {}

  int slots() const override { return slots_; }

  Result<std::vector<int64_t>> Append(std::span<const StreamAppend> appends) override {
    const MutexLock lock(mutex_);
    auto versions = Add(appends);
    if (versions) appended_.NotifyAll();
    return versions;
  }

  Result<int64_t> Begin(std::span<const StreamAppend> appends) override {
    const MutexLock lock(mutex_);
    const int64_t first = std::ssize(events_) + 1;
    MUSTER_TRY(Add(appends));
    open_[first] = std::ssize(events_);
    return first;
  }

  void Commit(int64_t transaction) override {
    const MutexLock lock(mutex_);
    open_.erase(transaction);
    appended_.NotifyAll();
  }

  bool Hides(const SlotPosition& upto) override {
    const MutexLock lock(mutex_);
    for (const auto& [first, last] : open_) {
      for (int64_t at = first; at <= std::min(last, upto.position); ++at) {
        if (EventAt(at).slot == upto.slot) return true;
      }
    }
    return false;
  }

  Result<std::vector<Event>> ReadStream(std::string_view stream, int64_t after,
                                        int limit) override {
    MUSTER_TRY(CheckStreamRead(after, limit));
    std::vector<Event> events;
    ReadBudget budget(limit, read_bytes_);
    const MutexLock lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return events;
    for (auto i = static_cast<size_t>(std::max<int64_t>(after, 0)); i < found->second.size(); ++i) {
      if (budget.Spent() || IsOpen(events_[found->second[i]])) break;
      events.push_back(events_[found->second[i]]);
      budget.Take(events.back());
    }
    return events;
  }

  Result<EventPage> ReadAll(int64_t after, int limit) override {
    MUSTER_TRY(CheckRead(after, limit));
    const MutexLock lock(mutex_);
    EventPage page;
    ReadBudget budget(limit, read_bytes_);
    for (int64_t at = after + 1; at <= Horizon() && !budget.Spent(); ++at) {
      if (IsOpen(EventAt(at))) continue;
      page.events.push_back(EventAt(at));
      budget.Take(EventAt(at));
    }
    SetEnd(page, budget, after);
    return page;
  }

  Result<EventPage> Read(std::span<const SlotPosition> from, int limit) override {
    MUSTER_TRY(CheckSlots(from, slots_, limit));
    std::vector<int64_t> after(static_cast<size_t>(slots_), INT64_MAX);
    int64_t first = INT64_MAX;
    for (const SlotPosition& slot : from) {
      after[static_cast<size_t>(slot.slot)] = slot.position;
      first = std::min(first, slot.position);
    }
    const MutexLock lock(mutex_);
    EventPage page;
    ReadBudget budget(limit, read_bytes_);
    for (int64_t at = std::max<int64_t>(first, 0); at < Horizon() && !budget.Spent(); ++at) {
      const Event& event = EventAt(at + 1);
      if (event.position <= after[static_cast<size_t>(event.slot)] || IsOpen(event)) continue;
      page.events.push_back(event);
      budget.Take(event);
    }
    SetEnd(page, budget, 0);
    return page;
  }

  Result<int64_t> Last() override {
    const MutexLock lock(mutex_);
    return LastVisible(std::ssize(events_));
  }

  Result<std::vector<EventMark>> MarksAt(std::span<const int64_t> positions) override {
    std::vector<EventMark> marks;
    const MutexLock lock(mutex_);
    for (const int64_t position : positions) marks.push_back(MarkAt(position));
    return marks;
  }

  Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) override {
    MUSTER_TRY(CheckSlots(from, slots_, 1));
    std::vector<SlotLag> lags;
    const MutexLock lock(mutex_);
    for (const SlotPosition& slot : from) {
      SlotLag lag{.slot = slot.slot};
      for (auto i = static_cast<size_t>(slot.position); i < events_.size(); ++i) {
        if (events_[i].slot != slot.slot || IsOpen(events_[i])) continue;
        if (lag.events++ == 0) lag.oldest = events_[i].time;
      }
      lags.push_back(lag);
    }
    return lags;
  }

  void Wait(std::chrono::milliseconds timeout, std::stop_token stop) override {
    MutexLock lock(mutex_);
    const int64_t seen = Horizon();
    appended_.WaitFor(lock, timeout, stop, [&]() REQUIRES(mutex_) { return Horizon() != seen; });
  }

 private:
  Result<std::vector<int64_t>> Add(std::span<const StreamAppend> appends) REQUIRES(mutex_) {
    MUSTER_TRY(CheckAppends(appends));
    std::vector<int64_t> versions;
    std::map<std::string_view, int64_t> heads;
    for (const StreamAppend& append : appends) {
      if (IsLocked(append.stream)) {
        return Error{Code::kUnavailable, "stream '" + append.stream + "' is locked"};
      }
      int64_t& head = heads.try_emplace(append.stream, HeadOf(append.stream)).first->second;
      if (append.expected != kAnyVersion && append.expected != head) {
        return WrongVersion(append.stream, append.expected, head);
      }
      head += static_cast<int64_t>(append.events.size());
    }
    for (const StreamAppend& append : appends) {
      std::vector<size_t>& stream = streams_[append.stream];
      for (const NewEvent& event : append.events) {
        stream.push_back(events_.size());
        events_.push_back(Event{.position = static_cast<int64_t>(events_.size()) + 1,
                                .stream = append.stream,
                                .version = static_cast<int64_t>(stream.size()),
                                .slot = SlotOf(append.stream, slots_),
                                .id = event.id.empty() ? env_.NewId() : event.id,
                                .type = event.type,
                                .payload = event.payload,
                                .metadata = event.metadata,
                                .time = env_.WallNow()});
      }
      versions.push_back(static_cast<int64_t>(stream.size()));
    }
    return versions;
  }

  const Event& EventAt(int64_t position) const REQUIRES(mutex_) {
    return events_[static_cast<size_t>(position) - 1];
  }

  // Up to here no event will appear any more.
  int64_t Horizon() const REQUIRES(mutex_) {
    if (open_.empty() || PLANTED_BUG(horizon_is_ignored)) return std::ssize(events_);
    return open_.begin()->first - 1;
  }

  bool IsOpen(const Event& event) const REQUIRES(mutex_) {
    const auto behind = open_.upper_bound(event.position);
    return behind != open_.begin() && event.position <= std::prev(behind)->second;
  }

  bool IsLocked(std::string_view stream) const REQUIRES(mutex_) {
    const auto found = streams_.find(stream);
    return found != streams_.end() && IsOpen(events_[found->second.back()]);
  }

  int64_t LastVisible(int64_t upto) const REQUIRES(mutex_) {
    while (upto > 0 && IsOpen(EventAt(upto))) --upto;
    return upto;
  }

  int64_t HeadOf(std::string_view stream) const REQUIRES(mutex_) {
    const auto found = streams_.find(stream);
    return found == streams_.end() ? 0 : static_cast<int64_t>(found->second.size());
  }

  void SetEnd(EventPage& page, const ReadBudget& budget, int64_t after) const REQUIRES(mutex_) {
    page.read_to = budget.Spent() ? page.events.back().position : std::max(after, Horizon());
    page.end = MarkAt(page.read_to);
  }

  EventMark MarkAt(int64_t position) const REQUIRES(mutex_) {
    const int64_t last = LastVisible(std::min<int64_t>(position, std::ssize(events_)));
    return last < 1 ? EventMark{} : MarkOf(EventAt(last));
  }

  Env& env_;
  const int slots_;
  const size_t read_bytes_;
  Mutex mutex_;
  Condition appended_{env_};
  std::vector<Event> events_ GUARDED_BY(mutex_);  // position n is at index n - 1
  std::map<std::string, std::vector<size_t>, std::less<>> streams_ GUARDED_BY(mutex_);
  // First and last positions of open transactions.
  std::map<int64_t, int64_t> open_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<MemoryLog> NewMemoryEventLog(Env& env, int slots, size_t read_bytes) {
  return std::make_unique<MemoryEventLog>(env, slots, read_bytes);
}

}  // namespace muster::events
