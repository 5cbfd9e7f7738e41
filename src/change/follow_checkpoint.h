#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/events.h"
#include "muster/result.h"
#include "sql/pgoutput.h"
#include "sql/postgres_replication.h"

namespace muster::change {

// How far a source has been followed. Stored in the log itself, as the last event of the stream
// `$follow/NAME`, in one append with the events that it stands for: so each change is appended
// once, and of two processes that follow the same source only one gets through.
struct FollowCheckpoint {
  enum class Phase {
    kCreating,   // the slot may exist; nothing has been read from it
    kFollowing,  // `system` and `end` hold
    kEnded,      // nothing of it is left at the source
  };
  Phase phase = Phase::kCreating;
  // Stored at the source, too: objects there under our name are ours only if it matches.
  std::string id = {};
  std::map<std::string, int64_t> tables = {};  // what is followed: oids by name
  sql::PgSystem system = {};
  sql::PgLsn end = 0;  // transactions that end here or earlier are in the log
  // For the next transaction: this many of its changes are in the log. Only large ones are split.
  sql::PgLsn commit = 0;
  int64_t changes = 0;
};

// Reads and writes the checkpoints of one source. Used by one thread.
class FollowLog {
 public:
  FollowLog(events::EventLog& log, const std::string& name)
      : log_(log), stream_("$follow/" + name) {}

  // The last one; none: this log has never followed the source.
  Result<std::optional<FollowCheckpoint>> Read();

  // Appends events together with their checkpoint, or nothing. Resolves an unknown outcome.
  // kConflict: another process has written since Read.
  Status Write(const FollowCheckpoint& checkpoint, std::vector<events::StreamAppend> appends);

 private:
  Result<std::vector<events::Event>> After(int64_t version);
  Result<int64_t> LastVersion();

  events::EventLog& log_;
  const std::string stream_;
  int64_t version_ = 0;
};

}  // namespace muster::change
