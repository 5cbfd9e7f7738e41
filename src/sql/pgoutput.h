#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"

namespace muster::sql {

// Messages of pgoutput, PostgreSQL's built-in plugin for logical decoding, in version 1 of its
// protocol: whole transactions in commit order.

// A position in a server's write-ahead log.
using PgLsn = uint64_t;
std::string PgLsnText(PgLsn lsn);  // "16/B374D848"
std::optional<PgLsn> ParsePgLsn(std::string_view text);

struct PgColumn {
  std::string name;
  bool is_key = false;  // part of the replica identity
  uint32_t type = 0;    // the oid of its type
  int32_t modifier = -1;

  bool operator==(const PgColumn&) const = default;
};

// Describes a table before its first change, and again after the table has changed.
struct PgRelation {
  uint32_t oid = 0;
  std::string schema = {};
  std::string table = {};
  char identity = 'd';  // pg_class.relreplident: 'f' sends whole old rows
  std::vector<PgColumn> columns = {};
};

struct PgField {
  enum class Kind { kNull, kUnchanged, kText };
  Kind kind = Kind::kNull;  // kUnchanged: a large value, stored out of line, that was not updated
  std::string_view text = {};
};
using PgTuple = std::vector<PgField>;

struct PgBegin {
  PgLsn commit = 0;  // where the commit record starts; grows from transaction to transaction
  WallTime time{};
  uint32_t xid = 0;
};

struct PgCommit {
  PgLsn end = 0;  // behind the commit record: where to resume
};

struct PgChange {
  enum class Kind { kInsert, kUpdate, kDelete };
  Kind kind = Kind::kInsert;
  uint32_t relation = 0;
  // Before an update that changed the key, before a delete, and before any update if the identity
  // is 'f'. Unless it is, only key columns are set.
  std::optional<PgTuple> old = {};
  PgTuple row = {};  // empty: deleted
};

struct PgTruncate {
  std::vector<uint32_t> relations;
};

// Written by pg_logical_emit_message.
struct PgMark {
  std::string_view prefix;
  std::string_view content;
};

// A message without meaning here: an origin or a type.
struct PgIgnored {};

using PgMessage =
    std::variant<PgBegin, PgCommit, PgRelation, PgChange, PgTruncate, PgMark, PgIgnored>;

// Texts of tuples and marks are views into `bytes`. kCorrupt: not a message of this protocol.
Result<PgMessage> DecodePgOutput(std::string_view bytes);

}  // namespace muster::sql
