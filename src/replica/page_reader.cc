#include "replica/page_reader.h"

#include <algorithm>
#include <utility>

namespace muster::replica {
namespace {

constexpr int kFirst = 32;
constexpr int kGrowth = 4;

}  // namespace

PageReader::PageReader(events::EventLog& log, int limit, size_t bytes, bool ahead)
    : log_(log), most_(limit), bytes_(bytes), limit_(std::min(limit, kFirst)), ahead_(ahead) {}

void PageReader::Learn(const events::EventPage& page, bool full) {
  size_t bytes = 1;
  for (const events::Event& event : page.events)
    bytes += event.payload.size() + event.metadata.size();
  if (!full && bytes <= bytes_) return;
  const auto count = static_cast<double>(page.events.size());
  const double fits = count * (static_cast<double>(bytes_) / static_cast<double>(bytes));
  limit_ = static_cast<int>(std::clamp(fits, 1.0, std::min<double>(most_, count * kGrowth)));
}

Result<events::EventPage> PageReader::Read(const std::vector<events::SlotPosition>& from) {
  // A page read for other positions, as before a failed batch, is useless.
  std::optional<Ahead> next = std::exchange(next_, std::nullopt);
  const bool is_there = next && next->from == from;
  const int asked = is_there ? next->limit : limit_;
  auto page = is_there ? next->page.get() : log_.Read(from, asked);
  if (!page) return page;
  const bool full = page->events.size() >= static_cast<size_t>(asked);
  Learn(*page, full);
  if (!ahead_ || !full) return page;
  std::vector<events::SlotPosition> behind = from;
  for (events::SlotPosition& slot : behind) slot.position = std::max(slot.position, page->read_to);
  auto read = [&log = log_, behind, limit = limit_] { return log.Read(behind, limit); };
  next_.emplace(Ahead{std::move(behind), limit_, std::async(std::launch::async, std::move(read))});
  return page;
}

}  // namespace muster::replica
