#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/mutex.h"
#include "muster/store.h"

namespace muster::plan {

// Caches what was read from the latest record: a run in progress is polled twice a second, but its
// record's body only changes with an attempt. Thread-safe.
template <class T>
class Latest {
 public:
  // `read` must depend on the record's key and body alone.
  template <class Read>
  std::shared_ptr<const T> In(const store::Record& record, Read read) {
    {
      const MutexLock lock(mutex_);
      if (said_ && key_ == record.key && body_ == record.body) return said_;
    }
    auto said = std::make_shared<const T>(read(record));
    const MutexLock lock(mutex_);
    key_ = record.key;
    body_ = record.body;
    said_ = said;
    return said;
  }

 private:
  Mutex mutex_;
  std::string key_ GUARDED_BY(mutex_);
  std::string body_ GUARDED_BY(mutex_);
  std::shared_ptr<const T> said_ GUARDED_BY(mutex_);
};

}  // namespace muster::plan
