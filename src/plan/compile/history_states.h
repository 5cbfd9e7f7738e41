#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/json.h"

namespace muster::plan {

// What an event of a history says beside its type and time.
const Json& DetailsOf(const Json& event);

// Which state each event of a history belongs to. Only those that enter or leave a state name it;
// the others name the event before them.
class HistoryStates {
 public:
  // Of the next event; empty: of none.
  const std::string& Of(const Json& event);

 private:
  std::map<int64_t, std::string> state_of_;
};

}  // namespace muster::plan
