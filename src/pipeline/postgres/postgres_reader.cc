#include "pipeline/postgres/postgres_reader.h"

#include <endian.h>

#include <cstring>

#include "core/backoff.h"
#include "core/log.h"
#include "pipeline/table/row_key.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr int kMaxTries = 6;  // in a row
constexpr Backoff::Pauses kPauses{.first = 200ms, .longest = 3200ms};
constexpr double kExactRows = 100'000;  // up to here the middle is found by counting
constexpr double kSampleRows = 10'000;
constexpr size_t kHeaderBytes = 19;  // of COPY's binary format

Error Broken(const sql::PgConnection& connection) {
  return Error{Code::kCorrupt, connection.Place() + " sent rows that cannot be read"};
}

template <class T>
bool TakeNumber(std::string_view& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  if constexpr (sizeof value == 2) value = static_cast<T>(be16toh(static_cast<uint16_t>(value)));
  if constexpr (sizeof value == 4) value = static_cast<T>(be32toh(static_cast<uint32_t>(value)));
  return true;
}

}  // namespace

PostgresReader::PostgresReader(Env& env, PostgresSnapshot& snapshot, const PgRelation& relation,
                               std::string part, std::string begin, std::string end,
                               std::stop_token stop)
    : env_(env),
      snapshot_(snapshot),
      relation_(relation),
      part_(std::move(part)),
      stop_(std::move(stop)),
      position_(std::move(begin)),
      end_(std::move(end)) {}

Status PostgresReader::Start() { return Connect(); }

Status PostgresReader::Connect() {
  if (copy_) return {};
  MUSTER_ASSIGN(const std::string sql, relation_.RowsSql(part_, position_, end_));
  MUSTER_ASSIGN(connection_, snapshot_.OpenSession());
  auto copy = sql::PgCopyOut::Start(*connection_, "COPY (" + sql + ") TO STDOUT (FORMAT binary)");
  if (!copy) return std::move(copy).error();
  copy_ = *std::move(copy);
  header_ = true;
  return {};
}

Result<std::optional<Document>> PostgresReader::Next() {
  if (done_) return std::nullopt;
  for (int tries = 1;; ++tries) {
    if (stop_.stop_requested()) return Error{Code::kCancelled, "stopped on request"};
    const auto row = Fetch();
    if (row && !*row) done_ = true;
    if (done_) return std::nullopt;
    if (row) break;
    copy_.reset();
    connection_.reset();
    if (row.error().code != Code::kUnavailable || tries == kMaxTries) return row.error();
    Log(Level::kInfo, "reading again after an error", {{"error", row.error().message}});
    env_.Sleep(kPauses.After(tries) + env_.Jitter(100ms), stop_);
  }
  const size_t keys = relation_.key.size();
  key_.clear();
  for (size_t i = 0; i < keys; ++i) {
    if (!fields_[i]) return Error{Code::kInvalid, relation_.collection + ": a key is null"};
    key_.push_back(*fields_[i]);
  }
  std::string position = EncodeKey(key_);
  if (position == position_ && !relation_.key_is_certain && !relation_.by_ctid) {
    return Error{Code::kInvalid, relation_.collection + ": the key " + position + " is not unique",
                 "name other columns with ?key=COLUMN,COLUMN"};
  }
  position_ = std::move(position);
  Document document{.id = fields_[keys].value_or(""),
                    .routing = fields_[keys + 1].value_or(""),
                    .body = fields_[keys + 2].value_or("null"),
                    .position = position_,
                    .defect = {},
                    .null_is_json = fields_[keys + 3] == std::string_view("\1", 1)};
  // A composite key has no single value, but its position identifies the row too.
  if (!fields_[keys] && !relation_.by_ctid && keys > 1) document.id = position_;
  return document;
}

Result<bool> PostgresReader::Fetch() {
  MUSTER_TRY(Connect());
  MUSTER_ASSIGN(const auto piece, copy_->Next());
  if (!piece) return false;
  std::string_view bytes = *piece;
  if (header_) {
    if (bytes.size() < kHeaderBytes) return Broken(*connection_);
    bytes.remove_prefix(kHeaderBytes);
    header_ = false;
    if (bytes.empty()) return Fetch();
  }
  int16_t columns = 0;
  if (!TakeNumber(bytes, columns)) return Broken(*connection_);
  if (columns == -1) {  // end of data: only the server's completion status follows
    MUSTER_ASSIGN(const auto rest, copy_->Next());
    if (rest) return Broken(*connection_);
    return false;
  }
  fields_.clear();
  for (int16_t i = 0; i < columns; ++i) {
    int32_t size = 0;
    if (!TakeNumber(bytes, size) || (size > 0 && bytes.size() < static_cast<size_t>(size))) {
      return Broken(*connection_);
    }
    if (size < 0) {
      fields_.emplace_back(std::nullopt);
    } else {
      fields_.emplace_back(bytes.substr(0, static_cast<size_t>(size)));
      bytes.remove_prefix(static_cast<size_t>(size));
    }
  }
  if (fields_.size() != relation_.key.size() + 4) return Broken(*connection_);
  return true;
}

Result<std::optional<std::string>> PostgresReader::Split() {
  if (done_) return std::nullopt;
  MUSTER_ASSIGN(const auto connection, snapshot_.OpenSession());
  std::optional<std::string> middle;
  const double rows = relation_.table.estimated_rows;
  const bool can_sample = relation_.table.kind == 'r' || relation_.table.kind == 'm';
  if (can_sample && rows > kExactRows) {
    MUSTER_ASSIGN(middle, MiddleOf(*connection, " TABLESAMPLE SYSTEM (" +
                                                    std::to_string(100 * kSampleRows / rows) +
                                                    ") REPEATABLE (0)"));
  }
  // The sample may contain no row of the remaining range.
  if (!middle) {
    MUSTER_ASSIGN(middle, MiddleOf(*connection, ""));
  }
  if (!middle) return std::nullopt;
  end_ = *middle;
  // The key order is the server's: query it again for the remaining range.
  copy_.reset();
  connection_.reset();
  return middle;
}

// A row in the middle of the remaining ones, with at least one more after it.
Result<std::optional<std::string>> PostgresReader::MiddleOf(sql::PgConnection& connection,
                                                            const std::string& sample) {
  MUSTER_ASSIGN(const std::string range, relation_.RangeSql(position_, end_));
  const std::string rows = " FROM " + (part_.empty() ? relation_.from : part_) + " t" + sample;
  const std::string order = relation_.by_ctid ? " ORDER BY t.ctid" : relation_.KeyOrder();
  const std::string sql = "WITH counted AS (SELECT count(*) AS n" + rows + range + ") SELECT n, " +
                          relation_.KeyAsText() + " FROM counted, LATERAL (SELECT *" +
                          (relation_.by_ctid ? ", t.ctid" : "") + rows + range + order +
                          " OFFSET (n - 1) / 2 LIMIT 1) t";
  MUSTER_ASSIGN(const sql::PgResult found,
                connection.Execute(sql::PgStatement{"", sql, false}, sql::PgParams()));
  if (found.rows() == 0 || found.Int64(0, 0) < 2) return std::nullopt;
  std::vector<std::string_view> key;
  for (size_t i = 0; i < relation_.key.size(); ++i) {
    key.push_back(found.Text(0, static_cast<int>(i) + 1));
  }
  return EncodeKey(key);
}

}  // namespace muster::pipeline
