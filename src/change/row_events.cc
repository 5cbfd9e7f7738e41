#include "change/row_events.h"

#include <algorithm>

#include "core/json.h"
#include "core/sha256.h"
#include "events/events.h"

namespace muster::change {
namespace {

using sql::PgField;
using sql::PgTuple;

// Types by their oids, which never change.
enum : uint32_t {
  kBool = 16,
  kInt8 = 20,
  kInt2 = 21,
  kInt4 = 23,
  kOid = 26,
  kJson = 114,
  kFloat4 = 700,
  kFloat8 = 701,
  kNumeric = 1700,
  kJsonb = 3802,
};

// As printed by PostgreSQL; NaN and Infinity are not JSON.
bool IsJsonNumber(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

void AppendValue(std::string& out, uint32_t type, const PgField& field) {
  if (field.kind == PgField::Kind::kNull) {
    out += "null";
    return;
  }
  const std::string_view text = field.text;
  switch (type) {
    case kBool:
      out += text == "t" ? "true" : "false";
      return;
    case kJson:
    case kJsonb:
      // One that no parser here accepts, such as 1e400, must not spoil the whole payload.
      if (Json::parse(text, nullptr, false).is_discarded()) break;
      out += text;
      return;
    case kInt2:
    case kInt4:
    case kInt8:
    case kOid:
    case kFloat4:
    case kFloat8:
    case kNumeric:
      if (IsJsonNumber(text)) {
        out += text;
        return;
      }
      break;
    default:
      break;
  }
  AppendJsonString(out, text);
}

// Columns whose value was sent.
void AppendObject(std::string& out, const std::vector<sql::PgColumn>& columns, const PgTuple& row) {
  out += '{';
  bool first = true;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (row[i].kind == PgField::Kind::kUnchanged) continue;
    if (!first) out += ',';
    first = false;
    AppendJsonString(out, columns[i].name);
    out += ':';
    AppendValue(out, columns[i].type, row[i]);
  }
  out += '}';
}

std::string NamesOfUnchanged(const std::vector<sql::PgColumn>& columns, const PgTuple& row) {
  std::string names;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (row[i].kind != PgField::Kind::kUnchanged) continue;
    names += names.empty() ? '[' : ',';
    AppendJsonString(names, columns[i].name);
  }
  return names.empty() ? names : names + ']';
}

// Several values stay apart even if they contain slashes.
std::string EscapeSlashes(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '/') {
      escaped += "%2F";
    } else if (c == '%') {
      escaped += "%25";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string KeyText(const std::vector<size_t>& key, const PgTuple& row) {
  if (key.size() == 1) return std::string(row[key.front()].text);
  std::string text;
  for (const size_t column : key) {
    if (!text.empty()) text += '/';
    text += EscapeSlashes(row[column].text);
  }
  return text;
}

// The first slash ends the table's name, whatever the names of tables and keys contain.
std::string StreamName(const std::string& table_name, const std::string& key) {
  std::string table = EscapeSlashes(table_name);
  if (key.empty()) return table;
  std::string stream = table + "/" + key;
  if (stream.size() > events::kMaxStreamBytes) stream = table + "/sha256-" + Sha256Hex(key);
  return stream;
}

// Large values that an update did not touch are taken from the old row, if that was sent whole.
PgTuple WithOldValues(const PgTuple& row, const std::optional<PgTuple>& old) {
  PgTuple whole = row;
  for (size_t i = 0; old && i < whole.size() && i < old->size(); ++i) {
    if (whole[i].kind == PgField::Kind::kUnchanged) whole[i] = (*old)[i];
  }
  return whole;
}

// The same for every repeat of the change.
std::string IdOf(const std::string& name, const ChangePlace& place) {
  return name + "-" + sql::PgLsnText(place.commit) + "-" + std::to_string(place.number);
}

bool IsEqual(const PgField& a, const PgField& b) { return a.kind == b.kind && a.text == b.text; }

}  // namespace

std::string TableName(std::string_view schema, std::string_view table) {
  // Otherwise a table with a dot in its name, in public, could be mistaken for one of another
  // schema.
  const bool is_plain = schema == "public" && table.find('.') == table.npos;
  return is_plain ? std::string(table) : std::string(schema) + "." + std::string(table);
}

Status RowEvents::Learn(const sql::PgRelation& relation, const std::vector<std::string>& key) {
  Table table{.relation = relation, .name = TableName(relation.schema, relation.table)};
  const auto& columns = relation.columns;
  const auto find = [&](const std::string& name) {
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const auto& column) { return column.name == name; });
    return static_cast<size_t>(found - columns.begin());
  };
  const bool whole = relation.identity == 'f';
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool is_primary = std::count(key.begin(), key.end(), columns[i].name) > 0;
    if (whole ? is_primary : columns[i].is_key) table.key.push_back(i);
  }
  for (const Outbox& outbox : outboxes_) {
    if (outbox.table != table.name && outbox.table != relation.schema + "." + relation.table) {
      continue;
    }
    table.outbox = &outbox;
    std::vector<std::string> names = {outbox.id, outbox.type, outbox.payload};
    if (!outbox.metadata.empty()) names.push_back(outbox.metadata);
    names.insert(names.end(), outbox.stream.begin(), outbox.stream.end());
    for (const std::string& name : names) {
      table.of_outbox.push_back(find(name));
      if (table.of_outbox.back() == columns.size()) {
        return Error{Code::kInvalid, "outbox '" + table.name + "' has no column '" + name + "'",
                     "name its columns: " + table.name + "?id=COLUMN&stream=COLUMN&type=COLUMN"};
      }
    }
  }
  tables_.insert_or_assign(relation.oid, std::move(table));
  return {};
}

Result<const RowEvents::Table*> RowEvents::Find(uint32_t oid) const {
  const auto found = tables_.find(oid);
  if (found != tables_.end()) return &found->second;
  return Error{Code::kCorrupt,
               "the stream has a change of an unknown table " + std::to_string(oid)};
}

Status RowEvents::Add(const sql::PgChange& change, const ChangePlace& place,
                      std::vector<events::StreamAppend>& out) {
  MUSTER_ASSIGN(const Table* table, Find(change.relation));
  const size_t columns = table->relation.columns.size();
  if ((change.old && change.old->size() != columns) ||
      (change.kind != sql::PgChange::Kind::kDelete && change.row.size() != columns)) {
    return Error{Code::kCorrupt, "a change of '" + table->name + "' has a wrong number of columns"};
  }
  if (table->outbox != nullptr) {
    if (change.kind == sql::PgChange::Kind::kInsert) AddOutbox(*table, change.row, place, out);
    return {};
  }
  const PgTuple* old = change.old ? &*change.old : nullptr;
  if (change.kind == sql::PgChange::Kind::kDelete) {
    AddRow(*table, "deleted", old, nullptr, place, "", out);
    return {};
  }
  const bool whole = table->relation.identity == 'f';
  const PgTuple row = whole ? WithOldValues(change.row, change.old) : change.row;
  if (change.kind == sql::PgChange::Kind::kInsert) {
    AddRow(*table, "inserted", nullptr, &row, place, "", out);
    return {};
  }
  const bool moved =
      old != nullptr && std::any_of(table->key.begin(), table->key.end(),
                                    [&](size_t i) { return !IsEqual((*old)[i], row[i]); });
  if (moved) {
    AddRow(*table, "deleted", old, nullptr, place, "-old", out);
    AddRow(*table, "inserted", nullptr, &row, place, "", out);
  } else {
    AddRow(*table, "updated", whole ? old : nullptr, &row, place, "", out);
  }
  return {};
}

Status RowEvents::Add(const sql::PgTruncate& truncate, const ChangePlace& place,
                      std::vector<events::StreamAppend>& out) {
  for (const uint32_t oid : truncate.relations) {
    MUSTER_ASSIGN(const Table* table, Find(oid));
    if (table->outbox != nullptr) continue;
    AddRow(*table, "truncated", nullptr, nullptr, place, "-" + std::to_string(oid), out);
  }
  return {};
}

void RowEvents::AddRow(const Table& table, std::string_view verb, const PgTuple* old,
                       const PgTuple* row, const ChangePlace& place, std::string_view id_suffix,
                       std::vector<events::StreamAppend>& out) {
  const auto& columns = table.relation.columns;
  const PgTuple* keyed = row != nullptr ? row : old;
  std::string payload = "{";
  const auto add = [&](std::string_view name) -> std::string& {
    if (payload.size() > 1) payload += ',';
    return payload.append("\"").append(name).append("\":");
  };
  std::string key;
  if (keyed != nullptr && !table.key.empty()) {
    key = KeyText(table.key, *keyed);
    add("key") += '{';
    for (const size_t column : table.key) {
      if (column != table.key.front()) payload += ',';
      AppendJsonString(payload, columns[column].name);
      payload += ':';
      AppendValue(payload, columns[column].type, (*keyed)[column]);
    }
    payload += '}';
  }
  if (row != nullptr) AppendObject(add("row"), columns, *row);
  if (old != nullptr && table.relation.identity == 'f') AppendObject(add("old"), columns, *old);
  const std::string unchanged = row == nullptr ? "" : NamesOfUnchanged(columns, *row);
  if (!unchanged.empty()) add("unchanged") += unchanged;
  payload += '}';
  events::NewEvent event{
      .type = table.name + "." + std::string(verb),
      .payload = std::move(payload),
      .metadata = ToJsonText({{"source", name_},
                              {"lsn", sql::PgLsnText(place.commit)},
                              {"number", place.number},
                              {"xid", place.xid},
                              {"committed_ms", place.time.time_since_epoch().count()}}),
      .id = IdOf(name_, place).append(id_suffix)};
  Take({.stream = StreamName(table.name, key), .events = {std::move(event)}}, table, place, out);
}

void RowEvents::AddOutbox(const Table& table, const PgTuple& row, const ChangePlace& place,
                          std::vector<events::StreamAppend>& out) {
  const auto field = [&](size_t i) -> const PgField& { return row[table.of_outbox[i]]; };
  size_t next = 3;
  events::NewEvent event{.type = std::string(field(1).text),
                         .payload = std::string(field(2).text),
                         .id = std::string(field(0).text)};
  if (field(2).kind == PgField::Kind::kNull) event.payload = "null";
  if (!table.outbox->metadata.empty()) {
    const PgField& metadata = field(next++);
    if (metadata.kind == PgField::Kind::kText) event.metadata = metadata.text;
  }
  std::string stream;
  for (; next < table.of_outbox.size(); ++next) {
    if (!stream.empty()) stream += '/';
    // The last one begins after the slashes of the others, and is taken as it is.
    const bool is_last = next + 1 == table.of_outbox.size();
    stream += is_last ? std::string(field(next).text) : EscapeSlashes(field(next).text);
  }
  Take({.stream = std::move(stream), .events = {std::move(event)}}, table, place, out);
}

void RowEvents::Take(events::StreamAppend append, const Table& table, const ChangePlace& place,
                     std::vector<events::StreamAppend>& out) {
  const Status fits = events::CheckAppends({&append, 1});
  if (!fits) {
    Reject(table, append.stream, place, fits.error().message, out);
  } else if (append.stream.starts_with("$follow")) {
    // A row must not be mistaken for a checkpoint.
    Reject(table, append.stream, place, "streams that begin with $follow are reserved", out);
  } else {
    out.push_back(std::move(append));
  }
}

void RowEvents::Reject(const Table& table, const std::string& key, const ChangePlace& place,
                       const std::string& why, std::vector<events::StreamAppend>& out) {
  ++rejected_;
  const Json payload{{"table", table.name},
                     {"stream", key.substr(0, events::kMaxStreamBytes)},
                     {"lsn", sql::PgLsnText(place.commit)},
                     {"number", place.number},
                     {"reason", why}};
  out.push_back(
      {.stream = "$follow/" + name_ + "/rejected",
       .events = {
           {.type = "follow.rejected", .payload = ToJsonText(payload), .id = IdOf(name_, place)}}});
}

}  // namespace muster::change
