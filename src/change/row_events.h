#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "change/outbox.h"
#include "muster/events.h"
#include "muster/result.h"
#include "sql/pgoutput.h"

namespace muster::change {

// The position of a change in the source's log.
struct ChangePlace {
  sql::PgLsn commit = 0;
  int64_t number = 0;  // within its transaction, from 1
  uint32_t xid = 0;
  WallTime time{};
};

// Turns changes of rows into events.
//
// A row of a table is a stream named by the table and the row's key: `orders/42`. Its events are
// `orders.inserted`, `orders.updated` and `orders.deleted`, with
//
//   {"key":{"id":42},"row":{"id":42,"total":9.5},"old":{…},"unchanged":["scan"]}
//
// `row` is absent after a delete, `old` is there if the table's replica identity is FULL, and
// `unchanged` names large values that the server did not send since they stayed the same. An update
// that changes the key is a delete and an insert. A table without a key, or one that is truncated,
// has events in the stream of its own name.
//
// An insert into an outbox is the event that the row describes; other changes of an outbox are
// ignored.
//
// A change that cannot be an event, because it is too large, say, becomes one of type
// `follow.rejected` in the stream `$follow/NAME/rejected`, with the reason. Used by one thread.
class RowEvents {
 public:
  RowEvents(std::string name, std::vector<Outbox> outboxes)
      : name_(std::move(name)), outboxes_(std::move(outboxes)) {}

  // `key`: the columns of the table's primary key, which a table sent with whole old rows does not
  // say. kInvalid: an outbox lacks a column.
  Status Learn(const sql::PgRelation& relation, const std::vector<std::string>& key);

  // Appends the events to `out`. kCorrupt: a change of a table that was not described.
  Status Add(const sql::PgChange& change, const ChangePlace& place,
             std::vector<events::StreamAppend>& out);
  Status Add(const sql::PgTruncate& truncate, const ChangePlace& place,
             std::vector<events::StreamAppend>& out);

  int64_t rejected() const { return rejected_; }

 private:
  struct Table {
    sql::PgRelation relation;
    std::string name;              // without the schema if that is public
    std::vector<size_t> key = {};  // indices of columns
    const Outbox* outbox = nullptr;
    std::vector<size_t> of_outbox = {};  // id, type, payload, metadata if any, then the stream's
  };

  Result<const Table*> Find(uint32_t oid) const;
  void AddRow(const Table& table, std::string_view verb, const sql::PgTuple* old,
              const sql::PgTuple* row, const ChangePlace& place, std::string_view id_suffix,
              std::vector<events::StreamAppend>& out);
  void AddOutbox(const Table& table, const sql::PgTuple& row, const ChangePlace& place,
                 std::vector<events::StreamAppend>& out);
  void Take(events::StreamAppend append, const Table& table, const ChangePlace& place,
            std::vector<events::StreamAppend>& out);
  void Reject(const Table& table, const std::string& key, const ChangePlace& place,
              const std::string& why, std::vector<events::StreamAppend>& out);

  const std::string name_;
  const std::vector<Outbox> outboxes_;
  std::map<uint32_t, Table> tables_;
  int64_t rejected_ = 0;
};

// "orders", or "shop.orders" for another schema than public.
std::string TableName(std::string_view schema, std::string_view table);

}  // namespace muster::change
