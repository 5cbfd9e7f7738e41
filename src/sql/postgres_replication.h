#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "sql/pgoutput.h"
#include "sql/postgres.h"

namespace muster::sql {

// Which cluster a server belongs to. A restored or promoted one has the same id and another
// timeline.
struct PgSystem {
  std::string id;
  int64_t timeline = 0;
};

// A piece of the stream; valid until the next one is read.
struct PgFrame {
  std::string_view message = {};  // of pgoutput; empty: a keep-alive
  PgLsn sent = 0;                 // keep-alive: all changes before this position have been sent
  bool wants_reply = false;
};

// A connection that receives changes by logical decoding. Used by one thread at a time. Errors are
// those of PgConnection; nothing here leaves an unknown outcome but CreateSlot.
class PgReplication {
 public:
  static Result<PgReplication> Open(PgOptions options);
  PgReplication(PgReplication&& other) noexcept;
  PgReplication& operator=(PgReplication&&) = delete;
  ~PgReplication();

  Result<PgSystem> Identify();

  // Where a timeline that led to `current` ended; none: it did not lead there.
  Result<std::optional<PgLsn>> EndOfTimeline(int64_t timeline, int64_t current);

  // Creates a slot for pgoutput; returns the position from which on it has all changes. Waits for
  // running transactions to end, within the call's timeout. kUnknownOutcome: it may exist.
  Result<PgLsn> CreateSlot(const std::string& name);

  // Starts the stream with the first transaction that commits at or after `from`. Then only Next
  // and Confirm may be called. kConflict: another connection reads from the slot.
  Status Start(const std::string& slot, PgLsn from, const std::vector<std::string>& publications);

  // Waits for the next frame until `until`; none: nothing came.
  Result<std::optional<PgFrame>> Next(MonoTime until);

  // Reports that everything before `flushed` is stored: the server may forget it.
  Status Confirm(PgLsn flushed);

 private:
  explicit PgReplication(std::unique_ptr<PgConnection> connection)
      : connection_(std::move(connection)) {}
  Result<PgResult> Ask(const std::string& command);
  Error Ended();

  std::unique_ptr<PgConnection> connection_;
  char* piece_ = nullptr;
};

}  // namespace muster::sql
