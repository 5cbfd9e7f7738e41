#include "replica/page_reader.h"

#include <algorithm>
#include <utility>

namespace muster {

Result<EventPage> PageReader::Read(const std::vector<SlotPosition>& from) {
  // Whatever was read for other positions, as before a batch failed, is of no use.
  std::optional<Ahead> next = std::exchange(next_, std::nullopt);
  auto page = next && next->from == from ? next->page.get() : log_.Read(from, limit_);
  if (!ahead_ || !page || page->events.size() < static_cast<size_t>(limit_)) return page;
  std::vector<SlotPosition> behind = from;
  for (SlotPosition& slot : behind) slot.position = std::max(slot.position, page->read_to);
  auto read = [&log = log_, behind, limit = limit_] { return log.Read(behind, limit); };
  next_.emplace(Ahead{std::move(behind), std::async(std::launch::async, std::move(read))});
  return page;
}

}  // namespace muster
