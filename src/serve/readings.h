#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/json.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster::serve {

// What a resource was when it was last read.
struct Reading {
  Result<Json> data;
  std::string text = {};  // of `data`, without secrets
};

// Reads resources by their path, each at most once at a time and not again for ten times as long
// as it took: whoever looks at something large does so a tenth of the time at most, however
// many they are. Thread-safe.
class Readings {
 public:
  using Read = std::function<Result<Json>(const std::string& path)>;

  Readings(Env& env, Read read) : env_(env), read_(std::move(read)) {}

  // Never null.
  std::shared_ptr<const Reading> Get(const std::string& path);

  // Something was changed: what was read before does not count.
  void Forget();

 private:
  struct Entry {
    std::mutex mutex;
    std::shared_ptr<const Reading> reading;
    MonoTime good_until{};
    int64_t age = 0;
  };

  Env& env_;
  const Read read_;
  std::mutex mutex_;
  int64_t age_ = 0;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
};

}  // namespace muster::serve
