#pragma once

#include <future>
#include <optional>
#include <vector>

#include "muster/events.h"

namespace muster {

// Reads a log page by page, at most `limit` events and about `bytes`: pages start small, and the
// number of events that fit is learned from the last one. With `ahead`, a thread reads the next
// page while the current one is handled, as long as pages are full. Used by one thread.
class PageReader {
 public:
  PageReader(EventLog& log, int limit, size_t bytes, bool ahead);

  // The page after these positions.
  Result<EventPage> Read(const std::vector<SlotPosition>& from);

 private:
  struct Ahead {
    std::vector<SlotPosition> from;
    int limit;
    std::future<Result<EventPage>> page;
  };

  void Learn(const EventPage& page, bool full);

  EventLog& log_;
  const int most_;
  const size_t bytes_;
  int limit_;  // of the next page
  const bool ahead_;
  std::optional<Ahead> next_;
};

}  // namespace muster
