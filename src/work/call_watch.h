#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::work {

// Notices calls of a source or a sink that do not return. Thread-safe.
class CallWatch {
 public:
  explicit CallWatch(Env& env) : env_(env) {}

  // Calls of one object, one at a time. Readers are called for each document, so that this costs
  // two writes to memory of its own and no look at a clock.
  class Caller {
   public:
    explicit Caller(Party party) : party_(party) {}

    template <class Call>
    auto Run(Call call) -> decltype(call()) {
      Count();
      auto result = call();
      Count();
      return result;
    }

   private:
    friend class CallWatch;
    void Count() { calls_.store(calls_.load(std::memory_order_relaxed) + 1); }

    const Party party_;
    std::atomic<uint64_t> calls_{0};  // odd: in a call
    // As of the last looks.
    uint64_t seen_ = 0;
    MonoTime seen_at_{};
  };
  std::shared_ptr<Caller> NewCaller(Party party);

  // What has been waited for since an earlier look, the longest wait first: "the sink, which has
  // not answered for 12s"; empty: nothing.
  std::string Look();

 private:
  Env& env_;
  Mutex mutex_;
  std::vector<std::weak_ptr<Caller>> callers_ GUARDED_BY(mutex_);
};

// With every call that may wait watched. The arguments must outlive them.
std::unique_ptr<pipeline::Source> NewWatchedSource(pipeline::Source& source, CallWatch& watch);
std::unique_ptr<pipeline::Sink> NewWatchedSink(pipeline::Sink& sink, CallWatch& watch);

}  // namespace muster::work
