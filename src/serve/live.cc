#include "serve/live.h"

#include <algorithm>
#include <charconv>

#include "core/guard.h"
#include "core/mutex.h"
#include "core/secrets.h"
#include "serve/merge_patch.h"

namespace muster::serve {
namespace {

std::string EventText(std::string_view name, const std::string& data) {
  return "event: " + std::string(name) + "\ndata: " + data + "\n\n";
}

std::string TopicText(const std::string& topic, std::string_view field, const std::string& json) {
  std::string text = "{\"topic\":";
  AppendJsonString(text, topic);
  return text + ",\"" + std::string(field) + "\":" + json + "}";
}

}  // namespace

LiveHub::LiveHub(Env& env, Readings& readings, LiveOptions options)
    : env_(env),
      readings_(readings),
      options_(options),
      boot_(env.NewId().substr(0, 12)),
      changed_(env),
      looking_([this](const std::stop_token& stop) { Look(stop); }) {}

LiveHub::~LiveHub() = default;

int LiveHub::viewers() const {
  const MutexLock lock(mutex_);
  return viewers_;
}

std::shared_ptr<LiveHub::Subscription> LiveHub::Join(const std::vector<std::string>& topics,
                                                     const std::string& last_event_id) {
  const MutexLock lock(mutex_);
  if (viewers_ >= options_.max_viewers) return nullptr;
  ++viewers_;
  std::shared_ptr<Subscription> subscription(new Subscription(*this));
  subscription->seen_ = number_;
  int64_t last = -1;
  if (const std::string prefix = boot_ + "."; last_event_id.starts_with(prefix)) {
    const char* end = last_event_id.data() + last_event_id.size();
    const auto parsed = std::from_chars(last_event_id.data() + prefix.size(), end, last);
    if (parsed.ec != std::errc() || parsed.ptr != end || last > number_) last = -1;
  }
  // Only if everything since then is still kept.
  const int64_t oldest = events_.empty() ? number_ + 1 : events_.front().number;
  const bool continues = last >= 0 && last + 1 >= oldest;
  if (continues) subscription->seen_ = last;
  for (const std::string& name : topics) {
    Topic& topic = topics_[name];
    topic.name = name;
    // A returning viewer already has an idle topic's reading, and gets later changes as events; for
    // a new viewer that reading is out of date.
    if (!continues && topic.viewers == 0) topic.reading = nullptr;
    const auto [place, is_new] = subscription->topics_.emplace(name, std::nullopt);
    if (is_new) ++topic.viewers;
    if (continues && topic.reading != nullptr) place->second = last;
  }
  changed_.NotifyAll();
  return subscription;
}

void LiveHub::Leave(Subscription& subscription) {
  const MutexLock lock(mutex_);
  --viewers_;
  for (const auto& [name, since] : subscription.topics_) --topics_.at(name).viewers;
}

// Topics outlive their last viewer for a while: most reconnect in a moment.
void LiveHub::Look(const std::stop_token& stop) {
  constexpr size_t kMaxIdleTopics = 256;
  while (!stop.stop_requested()) {
    std::vector<std::string> wanted;
    {
      MutexLock lock(mutex_);
      while (viewers_ == 0 && !stop.stop_requested()) changed_.Wait(lock, options_.ping, stop);
      if (topics_.size() > kMaxIdleTopics) {
        std::erase_if(topics_, [](const auto& topic) { return topic.second.viewers == 0; });
      }
      for (const auto& [name, topic] : topics_) {
        if (topic.viewers > 0) wanted.push_back(name);
      }
    }
    for (const std::string& name : wanted) {
      if (stop.stop_requested()) return;
      LogThrown("live view of " + name, [&] { Take(name, readings_.Get(name)); });
    }
    // A new viewer's topics are read at once.
    const MonoTime next = env_.MonoNow() + options_.look;
    MutexLock lock(mutex_);
    while (!HasUnreadTopic() && !stop.stop_requested()) {
      const auto rest = next - env_.MonoNow();
      if (rest <= rest.zero()) break;
      changed_.Wait(lock, rest, stop);
    }
  }
}

bool LiveHub::HasUnreadTopic() const {
  return std::any_of(topics_.begin(), topics_.end(), [](const auto& entry) {
    const Topic& topic = entry.second;
    return topic.viewers > 0 && topic.reading == nullptr && topic.problem.empty();
  });
}

void LiveHub::Take(const std::string& name, const std::shared_ptr<const Reading>& reading) {
  const MutexLock lock(mutex_);
  const auto found = topics_.find(name);
  if (found == topics_.end() || found->second.reading == reading) return;
  Topic& topic = found->second;
  if (!reading->data) {
    const std::string problem = ToJsonText(ProblemOf(reading->data.error()));
    if (problem == topic.problem) return;
    topic.problem = problem;
    Publish(topic, EventText("problem", TopicText(name, "error", problem)));
    return;
  }
  const bool recovered = !topic.problem.empty();
  topic.problem.clear();
  const std::shared_ptr<const Reading> before = topic.reading;
  topic.reading = reading;
  if (before == nullptr || recovered) {
    topic.snapshot = nullptr;
    Publish(topic, EventText("snapshot", TopicText(name, "data", reading->text)));
    return;
  }
  if (before->text == reading->text) return;
  const Json patch = MergePatch(*before->data, *reading->data);
  topic.snapshot = nullptr;
  if (patch.is_null()) return;
  Publish(topic, EventText("delta", TopicText(name, "patch", Redact(ToJsonText(patch)))));
}

void LiveHub::Publish(Topic& topic, std::string text) {
  topic.changed = ++number_;
  bytes_ += text.size();
  events_.push_back({number_, topic.name, std::make_shared<const std::string>(std::move(text))});
  while (!events_.empty() &&
         (events_.size() > options_.max_events || bytes_ > options_.max_bytes)) {
    bytes_ -= events_.front().text->size();
    events_.pop_front();
  }
  changed_.NotifyAll();
}

std::string LiveHub::IdLine() const {
  return "id: " + boot_ + "." + std::to_string(number_) + "\n";
}

std::string LiveHub::PingText() const {
  return EventText("ping", ToJsonText({{"now_at", env_.WallNow().time_since_epoch().count()}}));
}

// The events that the viewer lacks. Only the last has an id, so that after a connection lost
// halfway all are sent again. Deltas need their snapshot, so no event has an id until every topic
// has had one.
std::string LiveHub::Gather(Subscription& subscription, bool& all) {
  const int64_t oldest = events_.empty() ? number_ + 1 : events_.front().number;
  if (subscription.seen_ + 1 < oldest) {
    // Too slow: some events are no longer kept.
    for (auto& [name, since] : subscription.topics_) since.reset();
  }
  std::vector<std::shared_ptr<const std::string>> texts;
  for (auto event = events_.rbegin(); event != events_.rend() && event->number > subscription.seen_;
       ++event) {
    const auto topic = subscription.topics_.find(event->topic);
    if (topic != subscription.topics_.end() && topic->second && event->number > *topic->second) {
      texts.push_back(event->text);
    }
  }
  std::reverse(texts.begin(), texts.end());
  all = true;
  for (auto& [name, since] : subscription.topics_) {
    if (since) {
      since = number_;
      continue;
    }
    Topic& topic = topics_.at(name);
    if (!topic.problem.empty()) {
      texts.push_back(std::make_shared<const std::string>(
          EventText("problem", TopicText(name, "error", topic.problem))));
      // The snapshot that ends it comes as an event.
      since = number_;
    } else if (topic.reading != nullptr) {
      if (topic.snapshot == nullptr) {
        topic.snapshot = std::make_shared<const std::string>(
            EventText("snapshot", TopicText(name, "data", topic.reading->text)));
      }
      texts.push_back(topic.snapshot);
      since = number_;
    } else {
      all = false;
    }
  }
  subscription.seen_ = number_;
  std::string gathered;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (all && i + 1 == texts.size()) gathered += IdLine();
    gathered += *texts[i];
  }
  return gathered;
}

void LiveHub::Serve(Subscription& subscription, WebStream& stream) {
  if (!stream.Write("retry: 1000\n\n" + PingText())) return;
  bool all = false;
  MonoTime ping_at = env_.MonoNow() + options_.ping;
  while (!stream.stop().stop_requested()) {
    std::string text;
    {
      MutexLock lock(mutex_);
      text = Gather(subscription, all);
      if (text.empty()) {
        const int64_t seen = number_;
        while (number_ == seen && !stream.stop().stop_requested()) {
          const auto rest = ping_at - env_.MonoNow();
          if (rest <= rest.zero()) break;
          changed_.Wait(lock, rest, stream.stop());
        }
        text = Gather(subscription, all);
      }
    }
    if (env_.MonoNow() >= ping_at) {
      text += PingText();
      ping_at = env_.MonoNow() + options_.ping;
    }
    if (!text.empty() && !stream.Write(text)) return;
  }
}

}  // namespace muster::serve
