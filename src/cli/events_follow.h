#pragma once

#include <string>
#include <vector>

#include "cli/context.h"
#include "muster/events.h"
#include "muster/result.h"

namespace muster::cli {

struct EventsFollowOptions {
  std::string source;
  std::string name = "follow";
  std::vector<std::string> tables;
  std::vector<std::string> outboxes;
  bool once = false;
};

Result<int> FollowIntoLog(events::EventLog& log, const EventsFollowOptions& options,
                          Context& context);
Result<int> UnfollowIntoLog(events::EventLog& log, const EventsFollowOptions& options,
                            Context& context);

}  // namespace muster::cli
