#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

#include "core/condition.h"
#include "muster/store.h"

namespace muster::states {

// What the threads of one process that drive executions tell each other, so that nobody who rests
// keeps asking the store, and nobody waits for what another has left. All of it is a hint: whoever
// is told nothing looks by himself after a while. Thread-safe.
class Agenda {
 public:
  explicit Agenda(Env& env) : changed_(env) {}

  // To be asked before looking for work, and passed to Wait if there was none.
  uint64_t news() const;

  // Returns when there is news since then, when the store may have changed, after `timeout`, or
  // when a stop is requested. One thread at a time watches the store for all.
  void Wait(store::Store& store, uint64_t seen, milliseconds timeout, const std::stop_token& stop);

  // So many records are due that the caller does not take himself.
  void Leave(size_t count);

  // All look again.
  void WakeAll();

  // A branch of `parent` has ended; to be noted before the parent's record is read.
  void NoteEnded(const std::string& parent);
  // Whether that was noted, and not taken: whoever lets go of a parent asks after its record is
  // written. So one of the two always sees the other.
  bool TakeEnded(const std::string& parent);

 private:
  mutable std::mutex mutex_;
  muster::Condition changed_;
  uint64_t news_ = 0;
  size_t resting_ = 0;  // beside the one that watches the store
  bool watched_ = false;
  std::stop_source watch_;
  std::set<std::string> ended_;
};

}  // namespace muster::states
