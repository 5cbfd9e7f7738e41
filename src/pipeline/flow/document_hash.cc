#include "pipeline/flow/document_hash.h"

#include <simdjson.h>

#include <charconv>
#include <string>

#include "core/fnv.h"

namespace muster::pipeline {
namespace {

namespace ondemand = simdjson::ondemand;

// Both are FNV-1a with different seeds, finalised like SplitMix64.
uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

DocumentHash Combine(const DocumentHash& first, const DocumentHash& second) {
  return {Mix(first.low * 0x9e3779b97f4a7c15 + second.low),
          Mix(first.high * 0xc2b2ae3d27d4eb4f + second.high)};
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A number as its digits without leading and trailing zeros and a power of ten; empty: not a
// number.
std::string CanonicalNumber(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || !IsDigit(text[0])) return "";
  if (text.size() > 1 && text[0] == '0' && IsDigit(text[1])) return "";
  std::string digits;
  int64_t exponent = 0;
  size_t i = 0;
  for (; i < text.size() && IsDigit(text[i]); ++i) digits += text[i];
  if (i < text.size() && text[i] == '.') {
    const size_t point = ++i;
    for (; i < text.size() && IsDigit(text[i]); ++i) digits += text[i];
    if (i == point) return "";
    exponent -= static_cast<int64_t>(i - point);
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    if (++i < text.size() && text[i] == '+') ++i;
    int64_t power = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), power);
    if (error != std::errc{}) return "";
    exponent += power;
    i = static_cast<size_t>(end - text.data());
  }
  if (i != text.size()) return "";
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  digits.erase(0, digits.find_first_not_of('0'));
  if (digits.empty()) return "0";
  return (negative ? "-" : "") + digits + "e" + std::to_string(exponent);
}

DocumentHash HashScalar(std::string_view text) {
  const std::string number = CanonicalNumber(text);
  return HashBytes(number.empty() ? text : number);
}

simdjson::error_code HashObject(ondemand::object object, HashTypes types, DocumentHash& hash);

simdjson::error_code HashValue(ondemand::value value, HashTypes types, DocumentHash& hash,
                               bool& is_null) {
  ondemand::json_type type;
  if (const auto error = value.type().get(type)) return error;
  is_null = type == ondemand::json_type::null;
  switch (type) {
    case ondemand::json_type::object: {
      ondemand::object object;
      if (const auto error = value.get_object().get(object)) return error;
      return HashObject(object, types, hash);
    }
    case ondemand::json_type::array: {
      ondemand::array array;
      if (const auto error = value.get_array().get(array)) return error;
      hash = HashBytes("[");
      for (auto element : array) {
        ondemand::value inner;
        if (const auto error = element.get(inner)) return error;
        DocumentHash one;
        bool ignored = false;
        if (const auto error = HashValue(inner, types, one, ignored)) return error;
        hash = Combine(hash, one);
      }
      return simdjson::SUCCESS;
    }
    case ondemand::json_type::string: {
      std::string_view text;
      if (const auto error = value.get_string().get(text)) return error;
      hash = types == HashTypes::kCompared ? Combine(HashBytes("\""), HashBytes(text))
                                           : HashScalar(text);
      return simdjson::SUCCESS;
    }
    default: {
      std::string_view token = value.raw_json_token();
      token = token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
      hash = HashScalar(token);
      return simdjson::SUCCESS;
    }
  }
}

simdjson::error_code HashObject(ondemand::object object, HashTypes types, DocumentHash& hash) {
  hash = HashBytes("{");
  for (auto member : object) {
    ondemand::field field;
    std::string_view name;
    if (const auto error = std::move(member).get(field)) return error;
    if (const auto error = field.unescaped_key().get(name)) return error;
    const DocumentHash key = HashBytes(name);
    DocumentHash value;
    bool is_null = false;
    if (const auto error = HashValue(field.value(), types, value, is_null)) return error;
    // A sum, so order does not matter.
    if (!is_null || types == HashTypes::kCompared) hash += Combine(key, value);
  }
  return simdjson::SUCCESS;
}

}  // namespace

DocumentHash HashBytes(std::string_view bytes) {
  DocumentHash hash{kFnvStart, 0x84222325cbf29ce4};
  for (const char c : bytes) {
    hash.low = FnvStep(hash.low, c);
    hash.high = FnvStep(hash.high, c);
  }
  return {Mix(hash.low), Mix(hash.high + bytes.size())};
}

Result<DocumentHash> HashDocument(std::string_view body, HashTypes types) {
  thread_local ondemand::parser parser;
  const simdjson::padded_string padded(body);
  ondemand::document document;
  ondemand::object object;
  DocumentHash hash;
  auto error = parser.iterate(padded).get(document);
  if (!error) error = document.get_object().get(object);
  if (!error) error = HashObject(object, types, hash);
  if (error) {
    return Error{Code::kInvalid, std::string("not a valid JSON object: ") + error_message(error)};
  }
  return hash;
}

}  // namespace muster::pipeline
