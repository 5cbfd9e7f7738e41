#pragma once

#include <memory>
#include <string>

#include "muster/events.h"

namespace muster::events {

// The backends of OpenEventLog, which has parsed and checked the arguments.

// Reads time from `env`.
std::unique_ptr<EventLog> NewMemoryEventLog(Env& env, int slots,
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
