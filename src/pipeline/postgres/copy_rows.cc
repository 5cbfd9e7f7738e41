#include "pipeline/postgres/copy_rows.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "core/base64.h"
#include "pipeline/postgres/pg_array_literal.h"
#include "pipeline/table/document_table.h"

namespace muster::pipeline {
namespace {

constexpr std::array<char, 256> kEscapes = [] {
  std::array<char, 256> escapes{};
  escapes['\\'] = '\\';
  escapes['\n'] = 'n';
  escapes['\r'] = 'r';
  escapes['\t'] = 't';
  return escapes;
}();

void AppendEscaped(std::string_view text, std::string& out) {
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char escape = kEscapes[static_cast<unsigned char>(text[i])];
    if (escape == 0) continue;
    out.append(text, plain, i - plain);
    out += '\\';
    out += escape;
    plain = i + 1;
  }
  out.append(text, plain);
}

Error Misfit(const std::string& column, const std::string& why) {
  return Error{Code::kInvalid, "field '" + column + "' " + why};
}

void AppendHex(std::string_view bytes, std::string& out) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out += "\\\\x";  // a backslash, escaped for COPY
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
}

// Milliseconds since 1970, in a form PostgreSQL parses regardless of session settings.
Status AppendTime(std::string_view number, std::string& out) {
  int64_t since_epoch = 0;
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), since_epoch);
  constexpr int64_t kBound = 8'000'000'000'000'000;  // past PostgreSQL's last year
  if (error != std::errc{} || end != number.data() + number.size() || since_epoch > kBound ||
      since_epoch < -kBound) {
    return Error{Code::kInvalid, std::string(number) + " is not a time in whole milliseconds"};
  }
  const WallTime time{std::chrono::milliseconds(since_epoch)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::hh_mm_ss clock(time - day);
  // std::chrono's calendar ends in the year 32767.
  const std::chrono::year_month_day date(day);
  if (int64_t{static_cast<int>(date.year())} < 1 || since_epoch > 971'890'963'199'999) {
    return Error{Code::kInvalid, std::string(number) + " is a time outside the years 1 to 32767"};
  }
  std::array<char, 64> text;
  const int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02u %02d:%02d:%02d.%03d+00",
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
      static_cast<int>(clock.subseconds().count()));
  out.append(text.data(), static_cast<size_t>(size));
  return {};
}

}  // namespace

CopyRows::CopyRows(const sql::PgTable& table, Misfits misfits)
    : holds_documents_(HoldsDocuments(table)), fields_(FieldNames(table)) {
  int default_bits = 0;
  for (const sql::PgTable::Column& column : table.columns) {
    Target target{.name = column.name, .written = !column.generated};
    if (column.base == "json" || column.base == "jsonb") {
      target.form = Form::kJson;
      // A NOT NULL json column stores JSON null instead.
      target.null_is_json = !column.nullable && !column.is_array;
    }
    if (column.base == "bytea") target.form = Form::kBytes;
    if (column.base == "timestamp" || column.base == "timestamptz" || column.base == "date") {
      target.form = Form::kTime;
    }
    if (column.is_array) target.form = Form::kArray;
    if (misfits == Misfits::kRefuse) {
      target.numbers = NumberRule::OfPgType(column.base, column.portable_type);
      target.type = column.type;
    }
    if (column.name == "_id") target.form = Form::kId;
    if (column.name == "_routing") target.form = Form::kRouting;
    if (column.has_default && default_bits < 64) target.default_bit = default_bits++;
    targets_.push_back(std::move(target));
  }
}

std::vector<std::string> CopyRows::FieldNames(const sql::PgTable& table) {
  std::vector<std::string> names;
  for (const sql::PgTable::Column& column : table.columns) names.push_back(column.name);
  return names;
}

void CopyRows::Clear() {
  text_.clear();
  rows_.clear();
}

Status CopyRows::Add(size_t index, const Document& document) {
  const size_t begin = text_.size();
  uint64_t defaults = 0;
  if (holds_documents_) {
    AddDocument(document);
  } else {
    auto added = AddFields(document);
    if (!added) {
      text_.resize(begin);
      return std::move(added).error();
    }
    defaults = *added;
  }
  text_.back() = '\n';  // in place of the last column's tab
  rows_.push_back({index, begin, defaults});
  return {};
}

void CopyRows::AddDocument(const Document& document) {
  for (const Target& target : targets_) {
    if (target.name == "document") {
      AppendEscaped(document.body, text_);
    } else {
      const std::string_view value = target.name == "id" ? document.id : document.routing;
      if (value.empty()) text_ += "\\N";
      AppendEscaped(value, text_);
    }
    text_ += '\t';
  }
}

Result<uint64_t> CopyRows::AddFields(const Document& document) {
  MUSTER_ASSIGN(const std::span<const FieldValue> values, fields_.Read(document.body));
  uint64_t defaults = 0;
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Target& target = targets_[i];
    if (!target.written) continue;
    if (values[i].kind != FieldValue::Kind::kAbsent) {
      MUSTER_TRY(AddValue(target, values[i], document.null_is_json));
    } else if (target.form == Form::kId && !document.id.empty()) {
      AppendEscaped(document.id, text_);
    } else if (target.form == Form::kRouting && !document.routing.empty()) {
      AppendEscaped(document.routing, text_);
    } else if (document.null_is_json && target.form == Form::kJson) {
      text_ += target.null_is_json ? "null" : "\\N";  // it was NULL, so no default
    } else if (target.default_bit >= 0) {
      defaults |= uint64_t{1} << target.default_bit;
      continue;
    } else {
      text_ += "\\N";
    }
    text_ += '\t';
  }
  // COPY cannot express a row made only of defaults.
  if (text_.empty() || text_.back() != '\t') {
    return Error{Code::kInvalid, "no field is a column that can be written"};
  }
  return defaults;
}

Status CopyRows::AddValue(const Target& target, const FieldValue& value, bool null_is_json) {
  using Kind = FieldValue::Kind;
  if (value.kind == Kind::kNull) {
    const bool is_json = target.null_is_json || (null_is_json && target.form == Form::kJson);
    text_ += is_json ? "null" : "\\N";
    return {};
  }
  switch (target.form) {
    case Form::kJson:
      AppendEscaped(value.json, text_);
      return {};
    case Form::kArray:
      if (value.kind == Kind::kStructure) {
        std::string literal;
        if (auto done = AppendPgArray(value.json, target.numbers, literal); !done) {
          return Misfit(target.name, "is " + done.error().message);
        }
        AppendEscaped(literal, text_);
        return {};
      }
      break;
    case Form::kBytes:
      if (value.kind != Kind::kString || !value.text.starts_with("\\x")) {
        // The server would read a number's text as raw bytes.
        const auto bytes = value.kind == Kind::kString ? DecodeBase64(value.text) : std::nullopt;
        if (!bytes) return Misfit(target.name, "is neither base64 nor hexadecimal after \\x");
        AppendHex(*bytes, text_);
        return {};
      }
      break;
    case Form::kTime:
      if (value.kind == Kind::kNumber) {
        if (auto done = AppendTime(value.text, text_); !done) {
          return Misfit(target.name, "does not fit: " + done.error().message);
        }
        return {};
      }
      break;
    default:
      break;
  }
  return AddText(target, value);
}

Status CopyRows::AddText(const Target& target, const FieldValue& value) {
  using Kind = FieldValue::Kind;
  const bool may_be_number = value.kind == Kind::kNumber || value.kind == Kind::kString;
  if (may_be_number && target.form == Form::kPlain && !target.numbers.Keeps(value.text)) {
    return Misfit(target.name, "is a number that " + target.type +
                                   " would round: " + std::string(value.text) +
                                   "; a column of type numeric keeps it, and misfits=convert in "
                                   "the sink's URL rounds it");
  }
  if (value.kind == Kind::kString && !value.escaped) {
    text_ += value.text;  // JSON contains nothing that COPY needs escaped
    return {};
  }
  if (value.escaped && value.text.find('\0') != std::string_view::npos) {
    return Misfit(target.name, "holds the character U+0000, which PostgreSQL cannot store in text");
  }
  AppendEscaped(value.text, text_);
  return {};
}

std::string_view CopyRows::Text(size_t first, size_t last) const {
  const size_t begin = first < rows_.size() ? rows_[first].begin : text_.size();
  const size_t end = last < rows_.size() ? rows_[last].begin : text_.size();
  return std::string_view(text_).substr(begin, end - begin);
}

std::string CopyRows::Columns(uint64_t defaults) const {
  std::string columns;
  for (const Target& target : targets_) {
    const bool defaulted = target.default_bit >= 0 && ((defaults >> target.default_bit) & 1) != 0;
    if (!target.written || defaulted) continue;
    columns += (columns.empty() ? "" : ", ") + sql::PgIdentifier(target.name);
  }
  return columns;
}

}  // namespace muster::pipeline
