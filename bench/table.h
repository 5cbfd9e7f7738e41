#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/postgres_server.h"

namespace muster::bench {

// The table of one namespace of a store, filled by SQL: much faster than through the store. The
// store has been opened before, so the table has the shape and the indexes that the store gives it.
class Table {
 public:
  virtual ~Table() = default;

  // Replaces what is there by records that became due, one each millisecond, long ago but later
  // than those before: a queue's time does not run backwards. Leaves nothing for a later run to
  // clean up: the log is checkpointed, and statistics are fresh where a server would see to that by
  // itself.
  virtual void Fill(int64_t finished, int64_t due) = 0;

  virtual int64_t Finished() = 0;
};

std::unique_ptr<Table> SqliteTable(const std::string& path, const std::string& space);
std::unique_ptr<Table> PostgresTable(const testing::PostgresServer& server,
                                     const std::string& space);

}  // namespace muster::bench
