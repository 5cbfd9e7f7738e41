#include "pipeline/json/field_reader.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

namespace muster::pipeline {
namespace {

namespace ondemand = simdjson::ondemand;

std::string_view TrimRight(std::string_view token) {
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
  return token;
}

bool IsNumber(std::string_view token) {
  return token.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
}

Error Misfit(std::string message) { return Error{Code::kInvalid, std::move(message)}; }

Error Broken(simdjson::error_code code) {
  return Misfit(std::string("not a valid JSON object: ") + simdjson::error_message(code));
}

simdjson::error_code RawJson(ondemand::value& value, ondemand::json_type type,
                             std::string_view& json) {
  if (type == ondemand::json_type::object) {
    ondemand::object object;
    if (const auto error = value.get_object().get(object)) return error;
    return object.raw_json().get(json);
  }
  ondemand::array array;
  if (const auto error = value.get_array().get(array)) return error;
  return array.raw_json().get(json);
}

simdjson::error_code ReadValue(ondemand::value value, FieldValue& field) {
  using Kind = FieldValue::Kind;
  field.escaped = false;
  ondemand::json_type type;
  if (const auto error = value.type().get(type)) return error;
  switch (type) {
    case ondemand::json_type::string: {
      field.kind = Kind::kString;
      field.json = TrimRight(value.raw_json_token());
      field.escaped = std::memchr(field.json.data(), '\\', field.json.size()) != nullptr;
      if (field.escaped) return value.get_string().get(field.text);
      field.text = field.json.substr(1, field.json.size() - 2);
      return simdjson::SUCCESS;
    }
    case ondemand::json_type::object:
    case ondemand::json_type::array: {
      field.kind = Kind::kStructure;
      if (const auto error = RawJson(value, type, field.json)) return error;
      field.text = field.json = TrimRight(field.json);
      return simdjson::SUCCESS;
    }
    default:
      break;
  }
  field.json = field.text = TrimRight(value.raw_json_token());
  field.kind = type == ondemand::json_type::null      ? Kind::kNull
               : type == ondemand::json_type::boolean ? Kind::kBool
                                                      : Kind::kNumber;
  const bool valid = field.kind == Kind::kNull   ? field.text == "null"
                     : field.kind == Kind::kBool ? field.text == "true" || field.text == "false"
                                                 : IsNumber(field.text);
  return valid ? simdjson::SUCCESS : simdjson::TAPE_ERROR;
}

}  // namespace

struct FieldReader::Parser {
  ondemand::parser parser;
  std::string padded;  // the parser reads past the end of its input
};

FieldReader::FieldReader(std::vector<std::string> columns)
    : columns_(std::move(columns)), values_(columns_.size()), parser_(std::make_unique<Parser>()) {}

FieldReader::~FieldReader() = default;

int FieldReader::ColumnOf(std::string_view name, size_t expected) const {
  // Fields usually come in column order, or in the order of the previous document.
  if (expected < columns_.size() && columns_[expected] == name) return static_cast<int>(expected);
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  return found == columns_.end() ? -1 : static_cast<int>(found - columns_.begin());
}

Result<std::span<const FieldValue>> FieldReader::Read(std::string_view body) {
  std::string& padded = parser_->padded;
  padded.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  padded.assign(body);
  for (FieldValue& value : values_) value.kind = FieldValue::Kind::kAbsent;

  ondemand::document document;
  ondemand::object object;
  if (const auto error = parser_->parser.iterate(padded).get(document)) return Broken(error);
  if (const auto error = document.get_object().get(object)) return Broken(error);
  size_t expected = 0;
  for (auto member : object) {
    ondemand::field field;
    std::string_view name;
    if (const auto error = std::move(member).get(field)) return Broken(error);
    if (const auto error = field.unescaped_key().get(name)) return Broken(error);
    const int column = ColumnOf(name, expected);
    if (column < 0) return Misfit("field '" + std::string(name) + "' is not a column of the table");
    if (const auto error = ReadValue(field.value(), values_[column])) return Broken(error);
    expected = static_cast<size_t>(column) + 1;
  }
  if (!document.current_location().error()) {
    return Misfit("not a valid JSON object: more text after it");
  }
  return std::span<const FieldValue>(values_);
}

}  // namespace muster::pipeline
