#pragma once

#include <future>
#include <optional>
#include <vector>

#include "muster/events.h"

namespace muster {

// Reads a log page by page. Where `ahead`, a thread reads the next page while the last one is
// handled, as long as pages are full. Used by one thread.
class PageReader {
 public:
  PageReader(EventLog& log, int limit, bool ahead) : log_(log), limit_(limit), ahead_(ahead) {}

  // The page behind these positions.
  Result<EventPage> Read(const std::vector<SlotPosition>& from);

 private:
  struct Ahead {
    std::vector<SlotPosition> from;
    std::future<Result<EventPage>> page;
  };

  EventLog& log_;
  const int limit_;
  const bool ahead_;
  std::optional<Ahead> next_;
};

}  // namespace muster
