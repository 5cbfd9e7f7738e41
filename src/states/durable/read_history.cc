#include "states/durable/read_history.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "states/durable/load_flow.h"

namespace muster::states {
namespace {

constexpr int kScanPage = 100;

}  // namespace

Result<std::vector<Event>> ReadEvents(store::Store& store, const std::string& name) {
  const FlowCodec codec(store);
  MUSTER_ASSIGN(const FlowRecord root, LoadFlow(store, name));
  struct Entry {
    std::string path;
    Event event;
  };
  std::vector<Entry> entries;
  const auto add = [&](const FlowRecord& record) -> Status {
    MUSTER_ASSIGN(std::vector<Event> events, codec.LoadEvents(record));
    for (Event& event : events) entries.push_back({record.flow.path, std::move(event)});
    return {};
  };
  MUSTER_TRY(add(root));
  const std::string prefix = name + "/";
  std::string after;
  for (;;) {
    MUSTER_ASSIGN(const std::vector<store::Record> page,
                  store.Scan(kKind, prefix, after, kScanPage));
    for (const store::Record& stored : page) {
      after = stored.key;
      MUSTER_ASSIGN(const FlowRecord record, codec.Decode(stored));
      if (!record.apart) MUSTER_TRY(add(record));
    }
    if (page.size() < static_cast<size_t>(kScanPage)) break;
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.event.time, a.event.id) < std::tie(b.event.time, b.event.id);
  });
  // Each flow numbers its own events; the history numbers all of them.
  std::map<std::pair<std::string, int64_t>, int64_t> numbers;
  for (size_t i = 0; i < entries.size(); ++i)
    numbers[{entries[i].path, entries[i].event.id}] = static_cast<int64_t>(i) + 1;
  std::vector<Event> events;
  events.reserve(entries.size());
  for (Entry& entry : entries) {
    const auto own = numbers.find({entry.path, entry.event.previous});
    entry.event.id = numbers[{entry.path, entry.event.id}];
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
