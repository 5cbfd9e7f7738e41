#include "replica/log_identity.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/planted_bug.h"

namespace muster::replica {
namespace {

// Marks are made from the columns that the set's file names.
Error NotTheSame(const events::EventLog& log, const std::string& what) {
  const std::string why =
      log.KeepsEvents() ? ": the log was replaced, or restored from a backup"
                        : ": the table was replaced, or restored from a backup, or other columns "
                          "are configured as its position, stream, version or id than before";
  return {Code::kIncompatible, what + why,
          "restore the log to where it was, or handle it from the start with 'muster replica "
          "reset'; if there is a second version of the projection, drop that with 'muster replica "
          "rebuild --finish' too"};
}

Status CheckNotCut(events::EventLog& log, const std::string& projection,
                   std::span<const SlotState> slots) {
  MUSTER_ASSIGN(const int64_t last, log.Last());
  for (const SlotState& slot : slots) {
    if (slot.position <= last) continue;
    return NotTheSame(log, "the event log ends at position " + std::to_string(last) +
                               ", before what projection '" + projection + "' has handled");
  }
  return {};
}

Status Compare(const events::EventLog& log, const std::string& projection,
               const events::EventMark& known, const events::EventMark& found) {
  if (known.position == 0 || found == known) return {};
  const std::string position = "position " + std::to_string(known.position);
  if (found.position == known.position) {
    return NotTheSame(log, "at " + position + " the event log has another event than projection '" +
                               projection + "' has handled");
  }
  if (!log.KeepsEvents()) return {};
  return NotTheSame(log, "the event log has lost its event at " + position +
                             ", which projection '" + projection + "' has handled");
}

}  // namespace

Status CheckLogIsSame(events::EventLog& log, const std::string& projection,
                      std::span<const SlotState> slots) {
  MUSTER_TRY(CheckLogStillHas(log, projection, slots, {}));
  return {};
}

Result<bool> CheckLogStillHas(events::EventLog& log, const std::string& projection,
                              std::span<const SlotState> slots, const events::EventMark& read) {
  if (PLANTED_BUG(restored_logs_are_followed)) return true;
  bool all_marked = true;
  std::map<int64_t, events::EventMark> known;  // by position: most slots have the same
  for (const SlotState& slot : slots) {
    if (slot.mark.position != 0) {
      known[slot.mark.position] = slot.mark;
    } else {
      all_marked &= slot.position == 0;
    }
  }
  if (!all_marked && log.KeepsEvents()) MUSTER_TRY(CheckNotCut(log, projection, slots));
  std::vector<int64_t> positions;
  for (const auto& [position, mark] : known) positions.push_back(position);
  if (read.position != 0) positions.push_back(read.position);
  if (positions.empty()) return true;
  MUSTER_ASSIGN(const auto found, log.MarksAt(positions));
  size_t i = 0;
  for (const auto& [position, mark] : known) {
    MUSTER_TRY(Compare(log, projection, mark, found[i++]));
  }
  // Others may delete events from their tables.
  return read.position == 0 || found.back() == read ||
         (!log.KeepsEvents() && found.back().position != read.position);
}

Result<std::string> WarnIfLogEndsEarly(events::EventLog& log, const std::string& projection,
                                       std::span<const SlotState> slots) {
  if (log.KeepsEvents()) return std::string();
  MUSTER_ASSIGN(const int64_t last, log.Last());
  int64_t handled = 0;
  for (const SlotState& slot : slots) handled = std::max(handled, slot.position);
  if (handled <= last) return std::string();
  return "the event table ends at position " + std::to_string(last) + ", and projection '" +
         projection + "' has read up to " + std::to_string(handled) +
         ": its newest events were deleted, or it was restored or emptied; events that are given "
         "positions up to " +
         std::to_string(handled) + " from now on may be skipped";
}

}  // namespace muster::replica
