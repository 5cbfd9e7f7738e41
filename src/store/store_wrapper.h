#pragma once

#include <utility>

#include "muster/store.h"

namespace muster::store {

// Forwards every call to another store, which must outlive it. Derive and override what differs.
class StoreWrapper : public Store {
 public:
  explicit StoreWrapper(Store& inner) : inner_(inner) {}

  Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) override {
    return inner_.Get(kind, key);
  }
  Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                   std::string_view after, int limit) override {
    return inner_.Scan(kind, prefix, after, limit);
  }
  Result<std::vector<Written>> Write(std::span<const Change> changes) override {
    return inner_.Write(changes);
  }
  Result<std::vector<Record>> Claim(const ClaimRequest& request) override {
    return inner_.Claim(request);
  }
  Result<WallTime> Now() override { return inner_.Now(); }
  void Wait(std::string_view kind, milliseconds timeout, std::stop_token stop) override {
    inner_.Wait(kind, timeout, std::move(stop));
  }

 protected:
  Store& inner() const { return inner_; }

 private:
  Store& inner_;
};

}  // namespace muster::store
