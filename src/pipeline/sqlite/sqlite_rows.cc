#include "pipeline/sqlite/sqlite_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base64.h"
#include "pipeline/table/document_table.h"
#include "pipeline/table/number_rule.h"
#include "pipeline/table/table_shape.h"

namespace muster::pipeline {
namespace {

using Form = sql::SqliteTable::Form;
using Kind = FieldValue::Kind;

Error Misfit(const std::string& column, const std::string& why) {
  return Error{Code::kInvalid, "field '" + column + "' " + why};
}

Error Rounded(const std::string& column, std::string_view number) {
  return Misfit(column, "is a number that SQLite would change: " + std::string(number) +
                            "; a column of type TEXT keeps it, and misfits=convert in the sink's "
                            "URL rounds it");
}

std::vector<std::string> NamesOf(const sql::SqliteTable& table) {
  std::vector<std::string> names;
  for (const sql::SqliteTable::Column& column : table.columns) names.push_back(column.name);
  return names;
}

template <class T>
std::optional<T> Parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string> DecodeHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    if (error != std::errc{} || end != text.data() + i + 2) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace

SqliteRows::SqliteRows(sql::SqliteDb& db, sql::SqliteTable table, bool replaces, Misfits misfits)
    : db_(db),
      table_(std::move(table)),
      holds_documents_(HoldsDocuments(table_)),
      replaces_(replaces && HasKey()),
      misfits_(misfits),
      fields_(NamesOf(table_)),
      given_(table_.columns.size()) {}

Status SqliteRows::Insert(const Document& document) {
  return holds_documents_ ? InsertDocument(document) : InsertFields(document);
}

Status SqliteRows::Delete(const Document& document) {
  if (!delete_) {
    const std::string column = holds_documents_ ? "id" : "_id";
    if (table_.Find(column) == nullptr) return NoIdColumn(table_.name);
    MUSTER_ASSIGN(delete_, db_.Prepare("DELETE FROM " + sql::SqliteIdentifier(table_.name) +
                                       " WHERE " + sql::SqliteIdentifier(column) + " = ?1"));
  }
  return delete_->Bind(document.id).Run();
}

// Columns that are not given get their defaults again, as if the row were inserted: `excluded` has
// them.
std::string SqliteRows::ReplaceSql() const {
  std::string key;
  for (const std::string& name : table_.key) {
    key += (key.empty() ? "" : ", ") + sql::SqliteIdentifier(name);
  }
  std::string set;
  const auto add = [&](const std::string& name) {
    const std::string column = sql::SqliteIdentifier(name);
    set += (set.empty() ? "" : ", ") + column + " = excluded." + column;
  };
  for (const sql::SqliteTable::Column& column : table_.columns) {
    const bool is_key =
        std::find(table_.key.begin(), table_.key.end(), column.name) != table_.key.end();
    if (!column.generated && !is_key) add(column.name);
  }
  // A table that is all key still has to count the row as written.
  if (set.empty()) add(table_.key[0]);
  return " ON CONFLICT (" + key + ") DO UPDATE SET " + set;
}

Result<sql::SqliteStatement*> SqliteRows::StatementFor(const std::vector<bool>& given) {
  const auto known = statements_.find(given);
  if (known != statements_.end()) return &known->second;
  std::string columns;
  std::string values;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) continue;
    columns += (columns.empty() ? "" : ", ") + sql::SqliteIdentifier(table_.columns[i].name);
    values += values.empty() ? "?" : ", ?";
  }
  const std::string into = "INSERT INTO " + sql::SqliteIdentifier(table_.name);
  MUSTER_ASSIGN(sql::SqliteStatement statement,
                db_.Prepare(columns.empty() ? into + " DEFAULT VALUES"
                                            : into + " (" + columns + ") VALUES (" + values + ")" +
                                                  (replaces_ ? ReplaceSql() : "")));
  return &statements_.emplace(given, std::move(statement)).first->second;
}

Status SqliteRows::InsertDocument(const Document& document) {
  given_.assign(given_.size(), true);
  MUSTER_ASSIGN(sql::SqliteStatement* const statement, StatementFor(given_));
  for (size_t i = 0; i < table_.columns.size(); ++i) {
    const std::string& name = table_.columns[i].name;
    const std::string_view value = name == "document" ? document.body
                                   : name == "id"     ? document.id
                                                      : document.routing;
    const int index = static_cast<int>(i) + 1;
    if (value.empty()) {
      statement->BindAt(index, nullptr);
    } else {
      statement->BindAt(index, value);
    }
  }
  return statement->Run();
}

Status SqliteRows::InsertFields(const Document& document) {
  MUSTER_ASSIGN(const std::span<const FieldValue> values, fields_.Read(document.body));
  const auto own = [&](size_t i) -> std::string_view {
    const std::string& name = table_.columns[i].name;
    return name == "_id" ? document.id : name == "_routing" ? document.routing : "";
  };
  for (size_t i = 0; i < values.size(); ++i) {
    const sql::SqliteTable::Column& column = table_.columns[i];
    const bool there = values[i].kind != Kind::kAbsent || !own(i).empty();
    // A JSON column that was NULL has no field and must not get its default.
    const bool was_null = document.null_is_json && column.form == Form::kJson;
    given_[i] = !column.generated && (there || !column.has_default || was_null);
  }
  MUSTER_ASSIGN(sql::SqliteStatement* const statement, StatementFor(given_));
  bytes_.clear();
  bytes_.reserve(values.size());
  int index = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!given_[i]) continue;
    ++index;
    const sql::SqliteTable::Column& column = table_.columns[i];
    if (values[i].kind != Kind::kAbsent) {
      MUSTER_TRY(BindValue(*statement, index, column, values[i], document.null_is_json));
    } else if (!own(i).empty()) {
      statement->BindAt(index, own(i));
    } else if (document.null_is_json && column.form == Form::kJson && !column.nullable) {
      statement->BindAt(index, "null");
    } else {
      statement->BindAt(index, nullptr);
    }
  }
  return statement->Run();
}

Status SqliteRows::BindValue(sql::SqliteStatement& statement, int index,
                             const sql::SqliteTable::Column& column, const FieldValue& value,
                             bool null_is_json) {
  // A NOT NULL JSON column stores JSON null instead.
  const bool keeps_null = column.form == Form::kJson && (null_is_json || !column.nullable);
  if (value.kind == Kind::kNull && !keeps_null) {
    statement.BindAt(index, nullptr);
  } else if (column.form == Form::kJson) {
    statement.BindAt(index, value.json);
  } else if (value.kind == Kind::kBool) {
    statement.BindAt(index, value.text == "true" ? 1 : 0);
  } else if (value.kind == Kind::kNumber) {
    return BindNumber(statement, index, column, value.text);
  } else if (column.form == Form::kBlob && value.kind == Kind::kString) {
    auto bytes =
        value.text.starts_with("\\x") ? DecodeHex(value.text.substr(2)) : DecodeBase64(value.text);
    if (!bytes) return Misfit(column.name, "is neither base64 nor hexadecimal after \\x");
    bytes_.push_back(*std::move(bytes));
    statement.BindAt(index, sql::SqliteBlob{bytes_.back()});
  } else if (value.kind == Kind::kString && column.form != Form::kAny &&
             !Keeps(column, value.text)) {
    return Rounded(column.name, value.text);
  } else {
    statement.BindAt(index, value.text);
  }
  return {};
}

Status SqliteRows::BindNumber(sql::SqliteStatement& statement, int index,
                              const sql::SqliteTable::Column& column,
                              std::string_view number) const {
  if (column.form == Form::kText) {
    statement.BindAt(index, number);
    return {};
  }
  if (!Keeps(column, number)) return Rounded(column.name, number);
  if (const auto integer = Parse<int64_t>(number)) {
    statement.BindAt(index, *integer);
    return {};
  }
  const auto real = Parse<double>(number);
  if (!real || !std::isfinite(*real)) return Rounded(column.name, number);
  statement.BindAt(index, *real);
  return {};
}

// SQLite has integers of 64 bits and floats. Text that looks like a number becomes one in a column
// that is declared as numbers.
bool SqliteRows::Keeps(const sql::SqliteTable::Column& column, std::string_view number) const {
  const bool is_text =
      column.form == Form::kText || column.form == Form::kBlob || column.form == Form::kJson;
  if (is_text || misfits_ == Misfits::kConvert) return true;
  if (column.form != Form::kReal && Parse<int64_t>(number)) return true;
  return NumberRule::Double().Keeps(number);
}

}  // namespace muster::pipeline
