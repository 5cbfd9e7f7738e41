#include "states/durable/read_history.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include "states/durable/load_flow.h"
#include "store/store.h"

namespace muster::states {
namespace {

// The place of an event in the history. No event comes before what led to it, even if the clock was
// set back in between.
struct Moment {
  WallTime time = WallTime::min();
  int64_t step = 0;  // the number of events that led to it

  auto operator<=>(const Moment&) const = default;
};

struct FlowHistory {
  std::string key;
  std::string parent;    // its key
  int64_t begun_by = 0;  // the parent's event
  std::vector<Event> events;
  std::vector<Moment> moments = {};   // of the events
  std::vector<size_t> children = {};  // indices, in the order in which they began
};

// Whether it comes after all branches or iterations that were begun before it: the state that began
// them has succeeded, or begins others, perhaps because it is retried.
bool FollowsChildren(const Event& event) {
  return event.type.ends_with("StateSucceeded") || event.type.ends_with("StateStarted");
}

class Timeline {
 public:
  explicit Timeline(std::vector<FlowHistory>& flows) : flows_(flows) {}

  // Sets the moments of a flow and its children, none before `begin`. Returns the last one.
  Moment Place(size_t index, Moment begin) {
    FlowHistory& flow = flows_[index];
    flow.moments.reserve(flow.events.size());
    Children children;
    Moment now = begin;
    for (const Event& event : flow.events) {
      if (FollowsChildren(event)) now = std::max(now, PlaceChildren(flow, event.id, children));
      now = {std::max(now.time, event.time), now.step + 1};
      flow.moments.push_back(now);
    }
    return std::max(now, PlaceChildren(flow, std::numeric_limits<int64_t>::max(), children));
  }

 private:
  struct Children {
    size_t placed = 0;
    Moment last = {};  // of those placed
  };

  // Those begun before that event. Returns the last moment of all placed so far.
  Moment PlaceChildren(const FlowHistory& flow, int64_t event, Children& children) {
    for (; children.placed < flow.children.size(); ++children.placed) {
      const size_t index = flow.children[children.placed];
      const int64_t begun_by = flows_[index].begun_by;
      if (begun_by >= event) break;
      children.last = std::max(children.last, Place(index, MomentOf(flow, begun_by)));
    }
    return children.last;
  }

  // By the numbers of its own events, which have no gaps.
  static Moment MomentOf(const FlowHistory& flow, int64_t event) {
    if (flow.moments.empty() || event < flow.events.front().id) return {};
    const auto at = static_cast<size_t>(event - flow.events.front().id);
    return flow.moments[std::min(at, flow.moments.size() - 1)];
  }

  std::vector<FlowHistory>& flows_;
};

// All flows of an execution that share its history.
Result<std::vector<FlowHistory>> LoadFlows(store::Store& store, const std::string& name) {
  const FlowCodec codec(store);
  std::vector<FlowHistory> flows;
  const auto add = [&](const FlowRecord& record) -> Status {
    MUSTER_ASSIGN(std::vector<Event> events, codec.LoadEvents(record));
    const std::string& key = record.record.key;
    flows.push_back({.key = key,
                     .parent = record.parent,
                     .begun_by = record.first_event,
                     .events = std::move(events)});
    return {};
  };
  MUSTER_ASSIGN(const FlowRecord root, LoadFlow(store, name));
  MUSTER_TRY(add(root));
  for (store::RecordScan scan(store, kKind, name + "/", kScanPage);;) {
    MUSTER_ASSIGN(std::optional<store::Record> stored, scan.Next());
    if (!stored) return flows;
    MUSTER_ASSIGN(const FlowRecord record, codec.Decode(*std::move(stored)));
    if (!record.apart) MUSTER_TRY(add(record));
  }
}

void PlaceAll(std::vector<FlowHistory>& flows) {
  std::map<std::string_view, size_t> by_key;
  for (size_t i = 0; i < flows.size(); ++i) by_key.emplace(flows[i].key, i);
  // The execution itself, and what is within a child with its own history.
  std::vector<size_t> tops;
  for (size_t i = 0; i < flows.size(); ++i) {
    const auto parent = by_key.find(flows[i].parent);
    (parent == by_key.end() ? tops : flows[parent->second].children).push_back(i);
  }
  for (FlowHistory& flow : flows) {
    std::ranges::stable_sort(flow.children, {},
                             [&](size_t child) { return flows[child].begun_by; });
  }
  for (const size_t top : tops) Timeline(flows).Place(top, {});
}

}  // namespace

Result<std::vector<Event>> ReadEvents(store::Store& store, const std::string& name) {
  MUSTER_ASSIGN(std::vector<FlowHistory> flows, LoadFlows(store, name));
  PlaceAll(flows);
  struct Entry {
    const FlowHistory* flow;
    Moment moment;
    Event event;
  };
  std::vector<Entry> entries;
  for (FlowHistory& flow : flows) {
    // None if damaged records name each other as parents.
    for (size_t i = 0; i < flow.moments.size(); ++i)
      entries.push_back({&flow, flow.moments[i], std::move(flow.events[i])});
  }
  std::ranges::stable_sort(entries, {}, &Entry::moment);
  // Each flow numbers its own events; the history numbers all of them.
  std::map<std::pair<const FlowHistory*, int64_t>, int64_t> numbers;
  for (size_t i = 0; i < entries.size(); ++i)
    numbers[{entries[i].flow, entries[i].event.id}] = static_cast<int64_t>(i) + 1;
  std::vector<Event> events;
  events.reserve(entries.size());
  for (Entry& entry : entries) {
    const auto own = numbers.find({entry.flow, entry.event.previous});
    entry.event.id = numbers[{entry.flow, entry.event.id}];
    entry.event.previous = own == numbers.end() ? 0 : own->second;
    events.push_back(std::move(entry.event));
  }
  return events;
}

Result<Json> ReadHistory(store::Store& store, const std::string& name) {
  MUSTER_ASSIGN(const std::vector<Event> events, ReadEvents(store, name));
  Json list = Json::array();
  for (const Event& event : events) list.push_back(event.ToJson());
  return list;
}

}  // namespace muster::states
