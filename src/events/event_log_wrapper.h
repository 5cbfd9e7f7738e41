#pragma once

#include <utility>

#include "muster/events.h"

namespace muster::events {

// Forwards every call to another log, which must outlive it. Derive and override what differs.
class EventLogWrapper : public EventLog {
 public:
  explicit EventLogWrapper(EventLog& inner) : inner_(&inner) {}

  int slots() const override { return inner_->slots(); }
  Result<std::vector<int64_t>> Append(std::span<const StreamAppend> appends) override {
    return inner_->Append(appends);
  }
  Result<std::vector<Event>> ReadStream(std::string_view stream, int64_t after,
                                        int limit) override {
    return inner_->ReadStream(stream, after, limit);
  }
  Result<EventPage> ReadAll(int64_t after, int limit) override {
    return inner_->ReadAll(after, limit);
  }
  Result<EventPage> Read(std::span<const SlotPosition> from, int limit) override {
    return inner_->Read(from, limit);
  }
  Result<int64_t> Last() override { return inner_->Last(); }
  Result<std::vector<EventMark>> MarksAt(std::span<const int64_t> positions) override {
    return inner_->MarksAt(positions);
  }
  bool KeepsEvents() const override { return inner_->KeepsEvents(); }
  Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) override {
    return inner_->Lag(from);
  }
  void Wait(std::chrono::milliseconds timeout, std::stop_token stop) override {
    inner_->Wait(timeout, std::move(stop));
  }

 protected:
  EventLog& inner() const { return *inner_; }

  // For a log that is restored from a backup. No other call may be running.
  void Exchange(EventLog& inner) { inner_ = &inner; }

 private:
  EventLog* inner_;
};

}  // namespace muster::events
