#include <algorithm>
#include <map>
#include <vector>

#include "replica/operations.h"

namespace muster::replica {
namespace {

constexpr int kPage = 5'000;

}  // namespace

Result<AuditResult> Audit(events::EventLog& log, ReadModel& model, const Instance& instance) {
  MUSTER_ASSIGN(const auto slots, model.Slots(instance));
  std::map<int, SlotState> counted;  // from the log
  std::map<int, int64_t> positions;
  std::vector<int> numbers;
  int64_t end = 0;
  for (const SlotState& slot : slots) {
    numbers.push_back(slot.slot);
    positions[slot.slot] = slot.position;
    end = std::max(end, slot.position);
  }
  AuditResult result;
  for (int64_t after = 0; after < end;) {
    MUSTER_ASSIGN(const events::EventPage page, log.ReadAll(after, kPage));
    for (const events::Event& event : page.events) {
      if (event.position > positions[event.slot]) continue;
      SlotState& count = counted[event.slot];
      ++count.handled;
      count.digest ^= DigestOf(event);
      ++result.events;
    }
    if (page.read_to <= after) break;
    after = page.read_to;
  }
  for (const SlotState& slot : slots) {
    const SlotState& count = counted[slot.slot];
    result.handled += slot.handled - slot.skipped;
    result.skipped += slot.skipped;
    if (count.handled != slot.handled || count.digest != slot.digest) {
      result.wrong_slots.push_back(slot.slot);
    }
  }
  MUSTER_ASSIGN(const auto parked, model.Parked(instance, numbers));
  for (const ParkedStream& stream : parked) result.parked += std::ssize(stream.versions);
  result.handled -= result.parked;
  return result;
}

}  // namespace muster::replica
