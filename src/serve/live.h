#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/condition.h"
#include "core/mutex.h"
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
  size_t max_events = 4'096;              // kept for viewers that reconnect
  size_t max_bytes = 8 * 1024 * 1024;
};

// Sends viewers the changes of resources as server-sent events: a snapshot of each topic first,
// then merge patches. One thread reads for all viewers, and only topics with subscribers. A viewer
// that reconnects with the id of its last event gets what it missed, if that is still kept.
// Thread-safe; must outlive its streams.
class LiveHub {
 public:
  LiveHub(Env& env, Readings& readings, LiveOptions options = {});
  ~LiveHub();
  LiveHub(const LiveHub&) = delete;
  LiveHub& operator=(const LiveHub&) = delete;

  class Subscription;
  // Null: the viewer limit is reached.
  std::shared_ptr<Subscription> Join(const std::vector<std::string>& topics,
                                     const std::string& last_event_id);

  // Writes events until the stream fails or ends.
  void Serve(Subscription& subscription, WebStream& stream);

  int viewers() const;
  int max_viewers() const { return options_.max_viewers; }

 private:
  struct Topic {
    std::string name;
    int viewers = 0;
    std::shared_ptr<const Reading> reading;            // the last that differed; null: not read yet
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
  void Publish(Topic& topic, std::string text) REQUIRES(mutex_);
  std::string Gather(Subscription& subscription, bool& all) REQUIRES(mutex_);
  bool HasUnreadTopic() const REQUIRES(mutex_);
  std::string IdLine() const REQUIRES(mutex_);
  std::string PingText() const;
  void Leave(Subscription& subscription);

  Env& env_;
  Readings& readings_;
  const LiveOptions options_;
  const std::string boot_;  // distinguishes our events from those before a restart
  mutable Mutex mutex_;
  Condition changed_;
  int viewers_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, Topic> topics_ GUARDED_BY(mutex_);
  std::deque<Event> events_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  int64_t number_ GUARDED_BY(mutex_) = 0;  // of the last event
  std::jthread looking_;
};

// What a viewer follows, and how far it has got.
class LiveHub::Subscription {
 public:
  ~Subscription() { hub_.Leave(*this); }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

 private:
  friend class LiveHub;
  explicit Subscription(LiveHub& hub) : hub_(hub) {}

  LiveHub& hub_;
  // Guarded by the hub's mutex, which clang cannot follow through the reference.
  std::map<std::string, std::optional<int64_t>> topics_;  // the last event; none: needs a snapshot
  int64_t seen_ = 0;                                      // the last event considered
};

}  // namespace muster::serve
