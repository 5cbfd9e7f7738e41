#pragma once

#include <memory>
#include <string>

#include "muster/events.h"

namespace muster::events {

// The backends of OpenEventLog, which has parsed and checked the arguments.

// A log in memory. For tests and the simulator, its appends may commit late, as those of a
// database's transactions do.
class MemoryLog : public EventLog {
 public:
  // Appends in a transaction that stays open, and returns its number: the events have positions,
  // versions included, but readers do not see them, nor what lies behind them in the log.
  // kUnavailable, as for Append: another open transaction has locked one of the streams.
  virtual Result<int64_t> Begin(std::span<const StreamAppend> appends) = 0;
  // Ignored if it has committed.
  virtual void Commit(int64_t transaction) = 0;
  // Whether an open transaction has an event of the slot at or before the position.
  virtual bool Hides(const SlotPosition& upto) = 0;
};

// Reads time from `env`.
std::unique_ptr<MemoryLog> NewMemoryEventLog(Env& env, int slots,
                                             size_t read_bytes = kDefaultReadBytes);

Result<std::unique_ptr<EventLog>> OpenSqliteEventLog(const std::string& path,
                                                     const std::string& space, Env& env,
                                                     const EventLogOptions& options);

Result<std::unique_ptr<EventLog>> OpenPostgresEventLog(const std::string& uri,
                                                       const std::string& space, Env& env,
                                                       const EventLogOptions& options);

// Reads a table written by another library: `options.table`, with the slots given in `options`.
Result<std::unique_ptr<EventLog>> OpenPostgresTableLog(const std::string& uri, Env& env,
                                                       const EventLogOptions& options);

}  // namespace muster::events
