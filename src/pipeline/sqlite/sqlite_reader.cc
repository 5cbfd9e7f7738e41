#include "pipeline/sqlite/sqlite_reader.h"

#include <array>
#include <charconv>

#include "core/base64.h"
#include "pipeline/table/row_key.h"

namespace muster::pipeline {
namespace {

using Type = sql::SqliteStatement::Type;

// Key text includes the type: SQLite orders 1, 1.0, '1' and x'31' by it.
std::string KeyText(const sql::SqliteStatement& row, int column) {
  switch (row.TypeOf(column)) {
    case Type::kInteger:
      return "i" + std::to_string(row.Int(column));
    case Type::kFloat: {
      std::array<char, 32> text;
      const auto end = std::to_chars(text.data(), text.data() + text.size(), row.Double(column));
      return "r" + std::string(text.data(), end.ptr);
    }
    case Type::kText:
      return "t" + std::string(row.Text(column));
    default:
      return "b" + EncodeBase64(row.Blob(column));
  }
}

Status BindKey(sql::SqliteStatement& statement, int& index, std::vector<std::string>& values) {
  for (std::string& value : values) {
    const std::string_view text = std::string_view(value).substr(std::min<size_t>(value.size(), 1));
    ++index;
    int64_t integer = 0;
    double real = 0;
    switch (value.empty() ? '?' : value[0]) {
      case 'i':
        std::from_chars(text.data(), text.data() + text.size(), integer);
        statement.BindAt(index, integer);
        break;
      case 'r':
        std::from_chars(text.data(), text.data() + text.size(), real);
        statement.BindAt(index, real);
        break;
      case 't':
        statement.BindAt(index, text);
        break;
      case 'b': {
        auto bytes = DecodeBase64(text);
        if (!bytes) return Error{Code::kInvalid, "a position's key is not base64"};
        value = "b" + *std::move(bytes);
        statement.BindAt(index, sql::SqliteBlob{std::string_view(value).substr(1)});
        break;
      }
      default:
        return Error{Code::kInvalid, "'" + value + "' is not a key of a position"};
    }
  }
  return {};
}

std::string ColumnList(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names)
    list += (list.empty() ? "" : ", ") + sql::SqliteIdentifier(name);
  return list;
}

// " WHERE (a, b) > (?, ?) AND (a, b) <= (?, ?)", and the values to bind.
struct Range {
  std::string sql;
  std::vector<std::string> values;
};

Result<Range> RangeOf(const SqliteRelation& relation, const std::string& begin,
                      const std::string& end) {
  Range range;
  std::string marks;
  for (size_t i = 0; i < relation.key.size(); ++i) marks += i == 0 ? "?" : ", ?";
  const std::string columns = "(" + ColumnList(relation.key) + ")";
  for (const auto& [position, sign] : {std::pair(&begin, " > ("), std::pair(&end, " <= (")}) {
    if (position->empty()) continue;
    MUSTER_ASSIGN(const auto values, DecodeKey(*position, relation.key.size()));
    range.sql += (range.sql.empty() ? " WHERE " : " AND ") + columns + sign + marks + ")";
    range.values.insert(range.values.end(), values.begin(), values.end());
  }
  return range;
}

}  // namespace

SqliteReader::SqliteReader(std::unique_ptr<sql::SqliteDb> db, SqliteRelation relation,
                           std::string begin, std::string end, Misfits misfits,
                           std::stop_token stop)
    : db_(std::move(db)),
      relation_(std::move(relation)),
      documents_(relation_.table, static_cast<int>(relation_.key.size()), misfits),
      stop_(std::move(stop)),
      position_(std::move(begin)),
      end_(std::move(end)) {}

std::string SqliteReader::RowidPosition(int64_t rowid) {
  const std::string text = "i" + std::to_string(rowid);
  return EncodeKey({text});
}

std::optional<int64_t> SqliteReader::RowidOf(const std::string& position) {
  const auto values = DecodeKey(position, 1);
  if (!values || !values->front().starts_with('i')) return std::nullopt;
  const std::string& text = values->front();
  int64_t rowid = 0;
  std::from_chars(text.data() + 1, text.data() + text.size(), rowid);
  return rowid;
}

Status SqliteReader::Start() {
  if (rows_) return {};
  MUSTER_ASSIGN(Range range, RangeOf(relation_, position_, end_));
  const std::string key = ColumnList(relation_.key);
  std::string columns;
  for (const sql::SqliteTable::Column& column : relation_.table.columns) {
    columns += ", " + sql::SqliteIdentifier(column.name);
  }
  MUSTER_ASSIGN(rows_, db_->Prepare("SELECT " + key + columns + " FROM " +
                                    sql::SqliteIdentifier(relation_.table.name) + range.sql +
                                    " ORDER BY " + key));
  bounds_ = std::move(range.values);
  int index = 0;
  return BindKey(*rows_, index, bounds_);
}

std::string SqliteReader::KeyPosition() const {
  std::vector<std::string> texts;
  for (size_t i = 0; i < relation_.key.size(); ++i) {
    texts.push_back(KeyText(*rows_, static_cast<int>(i)));
  }
  return EncodeKey({texts.begin(), texts.end()});
}

Result<std::optional<Document>> SqliteReader::Next() {
  if (done_) return std::nullopt;
  if (stop_.stop_requested()) return Error{Code::kCancelled, "stopped on request"};
  MUSTER_TRY(Start());
  MUSTER_ASSIGN(const bool row, rows_->Step());
  if (!row) {
    done_ = true;
    rows_.reset();
    return std::nullopt;
  }
  position_ = KeyPosition();
  Document document = documents_.Read(*rows_);
  document.position = position_;
  return document;
}

Result<std::optional<std::string>> SqliteReader::Split() {
  if (done_) return std::nullopt;
  std::optional<std::string> middle;
  if (relation_.by_rowid) {
    MUSTER_ASSIGN(const auto span, RowidSpan(*db_, relation_, position_, end_));
    if (!span || span->first == span->last) return std::nullopt;
    middle = RowidPosition(span->first + (span->last - span->first) / 2);
  } else {
    MUSTER_ASSIGN(middle, MiddleKey());
    if (!middle) return std::nullopt;
  }
  end_ = *middle;
  rows_.reset();
  return middle;
}

Result<std::optional<SqliteReader::Span>> SqliteReader::RowidSpan(sql::SqliteDb& db,
                                                                  const SqliteRelation& relation,
                                                                  const std::string& begin,
                                                                  const std::string& end) {
  MUSTER_ASSIGN(Range range, RangeOf(relation, begin, end));
  const std::string key = ColumnList(relation.key);
  const std::string rows = " FROM " + sql::SqliteIdentifier(relation.table.name) + range.sql;
  // Each alone is an index lookup; both in one query would be a scan.
  std::array<int64_t, 2> edges{};
  for (size_t i = 0; i < edges.size(); ++i) {
    MUSTER_ASSIGN(sql::SqliteStatement select,
                  db.Prepare("SELECT " + std::string(i == 0 ? "min(" : "max(") + key + ")" + rows));
    int index = 0;
    std::vector<std::string> values = range.values;
    MUSTER_TRY(BindKey(select, index, values));
    MUSTER_TRY(select.Step());
    if (select.IsNull(0)) return std::nullopt;
    edges[i] = select.Int(0);
  }
  return Span{edges[0], edges[1]};
}

Result<std::optional<std::string>> SqliteReader::MiddleKey() {
  MUSTER_ASSIGN(Range range, RangeOf(relation_, position_, end_));
  const std::string rows = " FROM " + sql::SqliteIdentifier(relation_.table.name) + range.sql;
  MUSTER_ASSIGN(sql::SqliteStatement count, db_->Prepare("SELECT count(*)" + rows));
  int index = 0;
  std::vector<std::string> values = range.values;
  MUSTER_TRY(BindKey(count, index, values));
  MUSTER_TRY(count.Step());
  const int64_t left = count.Int(0);
  count.Reset();
  if (left < 2) return std::nullopt;
  const std::string key = ColumnList(relation_.key);
  MUSTER_ASSIGN(sql::SqliteStatement select,
                db_->Prepare("SELECT " + key + rows + " ORDER BY " + key + " LIMIT 1 OFFSET ?"));
  index = 0;
  values = range.values;
  MUSTER_TRY(BindKey(select, index, values));
  select.BindAt(index + 1, (left - 1) / 2);
  MUSTER_TRY(select.Step());
  std::vector<std::string> texts;
  for (size_t i = 0; i < relation_.key.size(); ++i) {
    texts.push_back(KeyText(select, static_cast<int>(i)));
  }
  return EncodeKey({texts.begin(), texts.end()});
}

}  // namespace muster::pipeline
