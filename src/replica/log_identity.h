#pragma once

#include <span>
#include <string>

#include "muster/events.h"
#include "muster/result.h"
#include "replica/read_model.h"

namespace muster::replica {

// Whether this is the log that the checkpoints of a projection were made from. A log that was
// restored from a backup assigns positions again; a projection would skip the new events up to its
// checkpoints. kIncompatible: it is not, with what to do. Other errors: the log cannot be read.
//
// A table of another library that ends before a checkpoint is no error: its owner may delete the
// newest events, and until there are new ones nothing is missed by waiting.
Status CheckLogIsSame(events::EventLog& log, const std::string& projection,
                      std::span<const SlotState> slots);

// The same, and whether the log still has `read`, an event beyond the checkpoints: one query for
// both.
Result<bool> CheckLogStillHas(events::EventLog& log, const std::string& projection,
                              std::span<const SlotState> slots, const events::EventMark& read);

// What an operator should know about such a table that ends before a checkpoint; empty: it does
// not, or the log keeps its events.
Result<std::string> WarnIfLogEndsEarly(events::EventLog& log, const std::string& projection,
                                       std::span<const SlotState> slots);

}  // namespace muster::replica
