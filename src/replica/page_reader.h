#pragma once

#include <future>
#include <optional>
#include <vector>

#include "muster/events.h"

namespace muster::replica {

// Reads a log page by page, at most `limit` events and about `bytes`: pages start small, and the
// number of events that fit is learned from the last one. With `ahead`, a thread reads the next
// page while the current one is handled, as long as pages are full. Used by one thread.
class PageReader {
 public:
  PageReader(events::EventLog& log, int limit, size_t bytes, bool ahead);

  // The page after these positions.
  Result<events::EventPage> Read(const std::vector<events::SlotPosition>& from);

 private:
  struct Ahead {
    std::vector<events::SlotPosition> from;
    int limit;
    std::future<Result<events::EventPage>> page;
  };

  void Learn(const events::EventPage& page, bool full);

  events::EventLog& log_;
  const int most_;
  const size_t bytes_;
  int limit_;  // of the next page
  const bool ahead_;
  std::optional<Ahead> next_;
};

}  // namespace muster::replica
