#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/store.h"
#include "store/store.h"
#include "task/notify/notification.h"

namespace muster::task {

// A notification as it stands in the store.
struct Letter {
  Notification news;
  bool delivered = false;
  std::string error;  // of the last try; empty: none has failed
};

// Notifications of migrations, in the store until they are delivered, and known from then on: kind
// "notification", queue and beginning of the key its migration. Each is a record with a due time;
// whoever claims it delivers it, and a crash leaves it to the next who looks. Thread-safe as far as
// the store is.
class Outbox {
 public:
  Outbox(store::Store& store, Env& env) : store_(store), env_(env) {}

  // Keeps one, once for each target and key: one that is there already is left as it is.
  Status Add(const std::string& migration, const Notification& news);

  // One that is to be delivered now, if there is one; nobody else gets it for a minute.
  Result<std::optional<store::Lease>> Take(const std::string& migration, std::stop_token stop);
  // kCorrupt: it is not one of ours.
  static Result<Letter> Read(const store::Record& record);

  // Leaves one that cannot be read as it is, for people to look at: it is never due again.
  Status SetAside(store::Lease& lease);

  // What became of it: it is delivered, or due again later, the later the more often it failed; or
  // it was not tried, and is due at once.
  Status Settle(store::Lease& lease, const Status& delivered, bool tried);

  // Makes due what somebody has taken and not delivered: for a migration that nobody else delivers
  // for any more.
  Status TakeBack(const std::string& migration);

  // All of a migration; one that cannot be read has an error and no target.
  Result<std::vector<Letter>> List(const std::string& migration);

 private:
  Status Commit(store::Lease& lease, std::string body, store::Due due);

  store::Store& store_;
  Env& env_;
};

}  // namespace muster::task
