#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/store.h"
#include "task/notify/notification.h"

namespace muster::task {

// A notification in the store.
struct Letter {
  Notification news;
  bool delivered = false;
  std::string error = {};  // of the last try; empty: none has failed
};

// Notifications of migrations, kept in the store also after delivery: kind "notification"; the
// migration is the queue and the beginning of the key. Each is a record with a due time: the
// claimer delivers it, and after a crash it is due again. As thread-safe as the store.
class Outbox {
 public:
  Outbox(store::Store& store, Env& env) : store_(store), env_(env) {}

  // Adds one per target and key; an existing one is left as it is.
  Status Add(const std::string& migration, const Notification& news);

  // Claims one that is due, if any, for a minute.
  Result<std::optional<store::Lease>> Take(const std::string& migration, std::stop_token stop);
  // kCorrupt: not a notification. kInvalid: a newer version of muster wrote it.
  static Result<Letter> Read(const store::Record& record);

  // Gives an unreadable one back as it is. A newer version's is due again, for one that can read
  // it; any other is kept for people to look at.
  Status Return(store::Lease& lease, const Error& unreadable);

  // Records the outcome: delivered; or failed, and due again after a growing pause; or not tried,
  // and due at once.
  Status Settle(store::Lease& lease, const Status& delivered, bool tried);

  // Makes claimed letters due again. Only when no other process delivers for this migration.
  Status TakeBack(const std::string& migration);

  // All of a migration; an unreadable one has an error and no target.
  Result<std::vector<Letter>> List(const std::string& migration);

 private:
  Status Commit(store::Lease& lease, std::string body, store::Due due);

  store::Store& store_;
  Env& env_;
};

}  // namespace muster::task
