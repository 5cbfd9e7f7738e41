#include "pipeline/sqlite/sqlite_documents.h"

#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "core/base64.h"
#include "core/json.h"
#include "core/utf8.h"
#include "pipeline/json/json_text.h"
#include "pipeline/table/document_table.h"
#include "pipeline/table/row_key.h"

namespace muster::pipeline {
namespace {

using Type = sql::SqliteStatement::Type;

void AppendReal(double value, std::string& json) {
  if (!std::isfinite(value)) {
    json += value > 0 ? "1e999" : "-1e999";  // as SQLite writes infinity
    return;
  }
  std::array<char, 40> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  const std::string_view number(text.data(), static_cast<size_t>(end.ptr - text.data()));
  json += number;
  if (number.find_first_of(".e") == std::string_view::npos) json += ".0";
}

void AppendBase64(std::string_view bytes, std::string& json) {
  json += '"';
  json += EncodeBase64(bytes);
  json += '"';
}

std::string EncodeHex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// For ids, which have to be text.
std::string TextOf(const sql::SqliteStatement& row, int column) {
  if (row.IsNull(column)) return "";
  if (row.TypeOf(column) == Type::kBlob) return EncodeBase64(row.Blob(column));
  return std::string(row.Text(column));
}

bool IsJsonNull(std::string_view text) {
  static constexpr std::string_view kSpaces = " \t\n\r";
  const size_t first = text.find_first_not_of(kSpaces);
  const size_t last = text.find_last_not_of(kSpaces);
  return first != std::string_view::npos && text.substr(first, last - first + 1) == "null";
}

}  // namespace

SqliteDocuments::SqliteDocuments(const sql::SqliteTable& table, int first_column, Misfits misfits)
    : table_(table), first_column_(first_column), misfits_(misfits) {}

Document SqliteDocuments::Read(const sql::SqliteStatement& row) {
  row_ = &row;
  defect_.clear();
  id_.clear();
  routing_.clear();
  body_.clear();
  null_is_json_ = false;
  if (HoldsDocuments(table_)) {
    ReadDocument();
  } else {
    ReadFields();
  }
  return {.id = id_,
          .routing = routing_,
          .body = body_,
          .position = {},
          .defect = defect_,
          .null_is_json = null_is_json_};
}

int SqliteDocuments::PlaceOf(std::string_view name) const {
  return static_cast<int>(table_.Find(name) - table_.columns.data()) + first_column_;
}

// As in PostgreSQL. The position will not do: it may be a rowid, which other tables lack.
std::string SqliteDocuments::CompositeId() const {
  std::vector<std::string> texts;
  for (const std::string& name : table_.key) {
    texts.push_back(TextOf(*row_, PlaceOf(name)));
  }
  return EncodeKey({texts.begin(), texts.end()});
}

void SqliteDocuments::ReadDocument() {
  const std::string document = NameText("document");
  id_ = NameText("id");
  if (table_.columns.size() == 3) routing_ = NameText("routing");
  body_.insert(0, document);
  if (!defect_.empty()) return;
  if (auto valid = CheckJsonObject(body_); !valid) defect_ = valid.error().message;
}

void SqliteDocuments::ReadFields() {
  const bool own = table_.Find("_id") != nullptr;  // the sink's columns for what is not a field
  null_is_json_ = HasJsonNull();
  body_ += '{';
  for (size_t i = 0; i < table_.columns.size(); ++i) {
    const sql::SqliteTable::Column& column = table_.columns[i];
    const int place = static_cast<int>(i) + first_column_;
    if (own && (column.name == "_id" || column.name == "_routing")) continue;
    if (null_is_json_ && column.form == sql::SqliteTable::Form::kJson && row_->IsNull(place))
      continue;
    if (body_.size() > 1) body_ += ',';
    AppendJsonString(body_, column.name);
    body_ += ':';
    AppendValue(place, column);
  }
  body_ += '}';
  if (table_.key.size() == 1) id_ = TextOf(*row_, PlaceOf(table_.key[0]));
  if (table_.key.size() > 1) id_ = CompositeId();
  if (own) id_ = NameText("_id");
  if (own && table_.Find("_routing") != nullptr) routing_ = NameText("_routing");
}

// Then NULL is left out of the document: see Document::null_is_json.
bool SqliteDocuments::HasJsonNull() const {
  for (size_t i = 0; i < table_.columns.size(); ++i) {
    const int place = static_cast<int>(i) + first_column_;
    if (table_.columns[i].form == sql::SqliteTable::Form::kJson &&
        row_->TypeOf(place) == Type::kText && IsJsonNull(row_->Text(place))) {
      return true;
    }
  }
  return false;
}

// The text of a column that is not a field. A blob there makes the row a defect.
std::string SqliteDocuments::NameText(std::string_view name) {
  const int place = PlaceOf(name);
  const sql::SqliteTable::Column& declared = *table_.Find(name);
  if (misfits_ == Misfits::kRefuse && declared.form != sql::SqliteTable::Form::kBlob &&
      row_->TypeOf(place) == Type::kBlob) {
    AppendMisfit(place, declared);
    return "";
  }
  return TextOf(*row_, place);
}

void SqliteDocuments::AppendValue(int column, const sql::SqliteTable::Column& declared) {
  switch (row_->TypeOf(column)) {
    case Type::kNull:
      body_ += "null";
      return;
    case Type::kInteger:
      body_ += std::to_string(row_->Int(column));
      return;
    case Type::kFloat:
      AppendReal(row_->Double(column), body_);
      return;
    case Type::kBlob:
      if (misfits_ == Misfits::kRefuse && declared.form != sql::SqliteTable::Form::kBlob) {
        AppendMisfit(column, declared);
        return;
      }
      AppendBase64(row_->Blob(column), body_);
      return;
    case Type::kText:
      AppendText(column, declared);
      return;
  }
}

void SqliteDocuments::AppendText(int column, const sql::SqliteTable::Column& declared) {
  const std::string_view text = row_->Text(column);
  const bool is_json = declared.form == sql::SqliteTable::Form::kJson;
  if (is_json && CheckJsonObject("{\"value\":" + std::string(text) + "}")) {
    body_ += text;
    return;
  }
  const bool is_blob = declared.form == sql::SqliteTable::Form::kBlob;
  if ((is_json || is_blob) && misfits_ == Misfits::kRefuse) {
    AppendMisfit(column, declared);
    return;
  }
  // Encoded like its column's blobs: text that happens to be base64 would be decoded into other
  // bytes.
  if (is_blob) {
    AppendBase64(text, body_);
    return;
  }
  if (ValidUtf8Prefix(text) != text.size()) {
    defect_ = "column '" + declared.name + "' is not valid UTF-8";
    // Verbatim: with U+FFFD substituted, the body would pass as a document and a redrive would
    // write it.
    body_ += '"';
    body_ += text;
    body_ += '"';
    return;
  }
  AppendJsonString(body_, text);
}

// As an SQL literal, so that the body does not pass as a document and a redrive cannot write it.
void SqliteDocuments::AppendMisfit(int column, const sql::SqliteTable::Column& declared) {
  const bool is_blob = row_->TypeOf(column) == Type::kBlob;
  const bool is_json = declared.form == sql::SqliteTable::Form::kJson;
  defect_ = "column '" + declared.name + "' is declared " +
            (declared.type.empty() ? "without a type" : declared.type) + " but holds " +
            (is_blob   ? "a blob"
             : is_json ? "text that is not JSON"
                       : "text") +
            ", which would be converted; add misfits=convert to the source URL to "
            "allow that";
  if (is_blob) {
    body_ += "x'" + EncodeHex(row_->Blob(column)) + "'";
    return;
  }
  body_ += '\'';
  for (const char c : row_->Text(column)) body_.append(c == '\'' ? 2 : 1, c);
  body_ += '\'';
}

}  // namespace muster::pipeline
