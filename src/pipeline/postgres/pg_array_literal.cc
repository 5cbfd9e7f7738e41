#include "pipeline/postgres/pg_array_literal.h"

#include <simdjson.h>

namespace muster::pipeline {
namespace {

namespace ondemand = simdjson::ondemand;

void AppendQuoted(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

struct Literal {
  const NumberRule& rule;
  std::string& text;
  std::string lost = {};  // the number that the rule does not keep

  bool Keeps(std::string_view number) {
    if (rule.Keeps(number)) return true;
    lost = number;
    return false;
  }
};

// Recursion is bounded by the parser's maximum depth.
simdjson::error_code AppendArray(ondemand::array array, Literal& literal) {
  std::string& out = literal.text;
  out += '{';
  bool first = true;
  for (auto element : array) {
    if (!first) out += ',';
    first = false;
    ondemand::value value;
    ondemand::json_type type;
    if (const auto error = element.get(value)) return error;
    if (const auto error = value.type().get(type)) return error;
    if (type == ondemand::json_type::array) {
      ondemand::array inner;
      if (const auto error = value.get_array().get(inner)) return error;
      if (const auto error = AppendArray(inner, literal)) return error;
    } else if (type == ondemand::json_type::null) {
      out += "NULL";
    } else if (type == ondemand::json_type::string) {
      std::string_view text;
      if (const auto error = value.get_string().get(text)) return error;
      if (text.find('\0') != std::string_view::npos) return simdjson::STRING_ERROR;
      if (!literal.Keeps(text)) return simdjson::NUMBER_OUT_OF_RANGE;
      AppendQuoted(text, out);
    } else if (type == ondemand::json_type::object) {
      ondemand::object object;
      std::string_view json;
      if (const auto error = value.get_object().get(object)) return error;
      if (const auto error = object.raw_json().get(json)) return error;
      AppendQuoted(json, out);
    } else {
      std::string_view token = value.raw_json_token();
      token = token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
      if (!literal.Keeps(token)) return simdjson::NUMBER_OUT_OF_RANGE;
      out += token;
    }
  }
  out += '}';
  return simdjson::SUCCESS;
}

}  // namespace

Status AppendPgArray(std::string_view json, const NumberRule& rule, std::string& out) {
  ondemand::parser parser;
  const simdjson::padded_string padded(json);
  ondemand::document document;
  ondemand::array array;
  auto error = parser.iterate(padded).get(document);
  if (!error) error = document.get_array().get(array);
  Literal literal{.rule = rule, .text = out};
  if (!error) error = AppendArray(array, literal);
  if (!literal.lost.empty()) {
    return Error{Code::kInvalid, "an array with a number that it would round: " + literal.lost};
  }
  if (error) {
    return Error{Code::kInvalid,
                 std::string("not an array that PostgreSQL can hold: ") + error_message(error)};
  }
  return {};
}

}  // namespace muster::pipeline
