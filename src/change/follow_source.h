#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "change/follow.h"
#include "change/follow_checkpoint.h"
#include "muster/result.h"
#include "sql/postgres_replication.h"

namespace muster::change {

// The database that is followed: its requirements, and our objects in it. Used by one thread.
class FollowSource {
 public:
  // kInvalid: the URL or the name.
  static Result<FollowSource> Open(const FollowOptions& options);

  // kInvalid lists everything that is missing: settings of the server, rights, tables, keys.
  Status Check();

  // kIncompatible: the objects at the source under our name do not belong to this log; or a
  // followed table is no longer published, or was replaced by one of the same name: then changes
  // are missing.
  Status CheckOwned(const FollowCheckpoint& checkpoint);

  // Creates the publications, or changes them to the tables in the options; returns those.
  Result<std::map<std::string, int64_t>> Publish(const std::string& id);

  // The slot's position; none: no slot. kIncompatible: its changes are lost, or the slot is not
  // ours.
  Result<std::optional<sql::PgLsn>> SlotPosition();

  // kUnavailable: it waits for a transaction, which the message names.
  Result<sql::PgLsn> CreateSlot();

  // kIncompatible: the checkpoint is of another source, or changes since then are missing.
  Status CheckContinues(const FollowCheckpoint& checkpoint);

  Result<sql::PgSystem> System();

  // Starts the stream behind the checkpoint. kConflict: another process reads from the slot.
  Result<sql::PgReplication> Stream(const FollowCheckpoint& checkpoint);

  // The columns of a table's primary key.
  Result<std::vector<std::string>> KeyOf(uint32_t oid);

  // Writes a mark to the source's log, which the stream then contains after everything committed
  // earlier. None: the server is too old.
  Result<std::optional<std::string>> Mark(Env& env);
  // The end of the source's log.
  Result<sql::PgLsn> Position();

  // Whether there is a slot or a publication.
  Result<bool> Exists();

  // Removes the slot and the publications. kConflict: the slot is still being read.
  Status Remove(Env& env);

 private:
  FollowSource(FollowOptions options, std::string uri)
      : options_(std::move(options)), uri_(std::move(uri)) {}

  Result<sql::PgResult> Ask(const std::string& sql, bool writes = false);
  Status CheckTable(const std::string& table, bool is_outbox, std::vector<std::string>& problems);
  Status CheckColumns(const Outbox& outbox, std::vector<std::string>& problems);
  struct Publication {
    bool exists = false;
    std::string id = {};
    std::map<std::string, int64_t> tables = {};  // oids by quoted name
  };
  Result<Publication> Read(const std::string& name);
  Status PublishAs(const std::string& name, const std::vector<std::string>& tables,
                   const std::string& operations, const std::string& id);
  Error StartOver(const std::string& why) const;
  std::string Slot() const { return "muster_" + options_.name; }
  std::vector<std::string> Publications() const;

  FollowOptions options_;
  std::string uri_;
  std::unique_ptr<sql::PgConnection> connection_;
};

}  // namespace muster::change
