#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/json.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster::serve {

// A resource as it was last read.
struct Reading {
  Result<Json> data;
  std::string text = {};  // of `data`, without secrets
};

// Caches resources by path. Each is read at most once at a time, and not again for ten times as
// long as it took: at most a tenth of the time is spent reading a resource, whatever the number of
// viewers. Thread-safe.
class Readings {
 public:
  using Read = std::function<Result<Json>(const std::string& path)>;

  Readings(Env& env, Read read) : env_(env), read_(std::move(read)) {}

  // Never null.
  std::shared_ptr<const Reading> Get(const std::string& path);

  // Invalidates everything that was read before.
  void Forget();

 private:
  struct Entry {
    Mutex mutex;
    std::shared_ptr<const Reading> reading GUARDED_BY(mutex);
    MonoTime good_until GUARDED_BY(mutex){};
    int64_t age GUARDED_BY(mutex) = 0;
  };

  Env& env_;
  const Read read_;
  Mutex mutex_;
  int64_t age_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<Entry>> entries_ GUARDED_BY(mutex_);
};

}  // namespace muster::serve
