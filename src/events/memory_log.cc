#include <algorithm>
#include <map>

#include "core/condition.h"
#include "core/mutex.h"
#include "events/backends.h"
#include "events/event_rules.h"

namespace muster::events {
namespace {

class MemoryEventLog final : public EventLog {
 public:
  MemoryEventLog(Env& env, int slots, size_t read_bytes)
      : env_(env), slots_(slots), read_bytes_(read_bytes) {}

  int slots() const override { return slots_; }

  Result<std::vector<int64_t>> Append(std::span<const StreamAppend> appends) override {
    MUSTER_TRY(CheckAppends(appends));
    std::vector<int64_t> versions;
    const MutexLock lock(mutex_);
    std::map<std::string_view, int64_t> heads;
    for (const StreamAppend& append : appends) {
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
    appended_.NotifyAll();
    return versions;
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
      if (budget.Spent()) break;
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
    for (auto i = static_cast<size_t>(after); i < events_.size(); ++i) {
      if (budget.Spent()) break;
      page.events.push_back(events_[i]);
      budget.Take(events_[i]);
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
    for (auto i = static_cast<size_t>(std::max<int64_t>(first, 0)); i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (budget.Spent()) break;
      if (event.position <= after[static_cast<size_t>(event.slot)]) continue;
      page.events.push_back(event);
      budget.Take(event);
    }
    SetEnd(page, budget, 0);
    return page;
  }

  Result<int64_t> Last() override {
    const MutexLock lock(mutex_);
    return events_.empty() ? 0 : events_.back().position;
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
        if (events_[i].slot != slot.slot) continue;
        if (lag.events++ == 0) lag.oldest = events_[i].time;
      }
      lags.push_back(lag);
    }
    return lags;
  }

  void Wait(std::chrono::milliseconds timeout, std::stop_token stop) override {
    MutexLock lock(mutex_);
    const size_t seen = events_.size();
    appended_.WaitFor(lock, timeout, stop,
                      [&]() REQUIRES(mutex_) { return events_.size() != seen; });
  }

 private:
  int64_t HeadOf(std::string_view stream) const REQUIRES(mutex_) {
    const auto found = streams_.find(stream);
    return found == streams_.end() ? 0 : static_cast<int64_t>(found->second.size());
  }

  void SetEnd(EventPage& page, const ReadBudget& budget, int64_t after) const REQUIRES(mutex_) {
    page.read_to = budget.Spent() ? page.events.back().position
                                  : std::max(after, static_cast<int64_t>(events_.size()));
    page.end = MarkAt(page.read_to);
  }

  EventMark MarkAt(int64_t position) const REQUIRES(mutex_) {
    const int64_t last = std::min<int64_t>(position, std::ssize(events_));
    return last < 1 ? EventMark{} : MarkOf(events_[static_cast<size_t>(last) - 1]);
  }

  Env& env_;
  const int slots_;
  const size_t read_bytes_;
  Mutex mutex_;
  Condition appended_{env_};
  std::vector<Event> events_ GUARDED_BY(mutex_);  // position n is at index n - 1
  std::map<std::string, std::vector<size_t>, std::less<>> streams_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<EventLog> NewMemoryEventLog(Env& env, int slots, size_t read_bytes) {
  return std::make_unique<MemoryEventLog>(env, slots, read_bytes);
}

}  // namespace muster::events
