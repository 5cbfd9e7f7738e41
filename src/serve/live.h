#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "serve/readings.h"
#include "serve/web_message.h"

namespace muster::serve {

constexpr size_t kMaxTopics = 16;  // of one stream

struct LiveOptions {
  int max_viewers = 64;
  std::chrono::milliseconds look{250};    // how often topics are read
  std::chrono::milliseconds ping{5'000};  // so that a broken stream is noticed
  size_t max_events = 4'096;              // that are kept for those who come back
  size_t max_bytes = 8 * 1024 * 1024;
};

// Follows resources and tells viewers what has changed, as server-sent events: a snapshot of each
// topic first, then merge patches. One thread reads for all viewers; topics that nobody follows are
// not read. Whoever comes back with the id of the last event gets what came since, as long as it is
// kept. Thread-safe; must outlive its streams.
class LiveHub {
 public:
  LiveHub(Env& env, Readings& readings, LiveOptions options = {});
  ~LiveHub();
  LiveHub(const LiveHub&) = delete;
  LiveHub& operator=(const LiveHub&) = delete;

  // A place for a viewer; none: there are as many as may be.
  class Seat;
  std::shared_ptr<Seat> Join(const std::vector<std::string>& topics,
                             const std::string& last_event_id);

  // Writes events until the stream fails or ends.
  void Serve(Seat& seat, WebStream& stream);

  int viewers() const;
  int max_viewers() const { return options_.max_viewers; }

 private:
  struct Topic {
    std::string name;
    int viewers = 0;
    std::shared_ptr<const Reading> reading;            // the last that differed; none: not read yet
    std::string problem = {};                          // why it cannot be read at the moment
    int64_t changed = 0;                               // the number of its last event
    std::shared_ptr<const std::string> snapshot = {};  // an event, if it is up to date
  };
  struct Event {
    int64_t number = 0;
    std::string topic;
    std::shared_ptr<const std::string> text;
  };

  void Look(const std::stop_token& stop);
  void Take(const std::string& name, const std::shared_ptr<const Reading>& reading);
  void Publish(Topic& topic, std::string text);
  std::string Gather(Seat& seat, bool& all);
  std::string IdLine() const;
  std::string PingText() const;
  void Leave(Seat& seat);

  Env& env_;
  Readings& readings_;
  const LiveOptions options_;
  const std::string boot_;  // tells our events from those of a server before
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  int viewers_ = 0;
  std::map<std::string, Topic> topics_;
  std::deque<Event> events_;
  size_t bytes_ = 0;
  int64_t number_ = 0;  // of the last event
  std::jthread looking_;
};

// What a viewer has got.
class LiveHub::Seat {
 public:
  ~Seat() { hub_.Leave(*this); }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

 private:
  friend class LiveHub;
  explicit Seat(LiveHub& hub) : hub_(hub) {}

  LiveHub& hub_;
  std::map<std::string, std::optional<int64_t>> topics_;  // the last event; none: needs a snapshot
  int64_t seen_ = 0;                                      // the last event that was looked at
};

}  // namespace muster::serve
