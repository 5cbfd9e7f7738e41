#include "pipeline/json/value_edits.h"

#include "core/json.h"
#include "core/json_scan.h"
#include "core/sha256.h"

namespace muster::pipeline {
namespace {

using Edited = Result<std::optional<std::string>>;

std::string Quoted(std::string_view text) {
  std::string json;
  AppendJsonString(json, text);
  return json;
}

// Tolerates spaces around a number or boolean in a string.
std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

Error Cannot(std::string_view value, std::string_view type) {
  const bool is_long = value.size() > 40;
  return {Code::kInvalid, std::string(value.substr(0, 40)) + (is_long ? "…" : "") +
                              " cannot be cast to " + std::string(type)};
}

Edited ToNumber(std::string_view value, bool integer) {
  const auto text = JsonScalarText(value);
  const std::string_view number = text ? Trimmed(*text) : std::string_view();
  const bool fits =
      IsJsonNumber(number) && (!integer || number.find_first_of(".eE") == std::string_view::npos);
  if (!fits) return Cannot(value, integer ? "integer" : "number");
  return std::string(number);
}

Edited ToBoolean(std::string_view value) {
  const auto scalar = JsonScalarText(value);
  const std::string_view text = scalar ? Trimmed(*scalar) : std::string_view();
  for (const std::string_view yes : {"true", "t", "yes", "1"}) {
    if (text == yes) return "true";
  }
  for (const std::string_view no : {"false", "f", "no", "0"}) {
    if (text == no) return "false";
  }
  return Cannot(value, "boolean");
}

// Objects and arrays become their JSON text.
Edited ToText(std::string_view value) {
  if (value.starts_with('"')) return std::nullopt;
  return Quoted(value);
}

}  // namespace

bool IsJsonNumber(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at > begin;
  };
  const auto skip = [&](std::string_view any) {
    const bool is_one = at < text.size() && any.find(text[at]) != std::string_view::npos;
    if (is_one) ++at;
    return is_one;
  };
  skip("-");
  if (!skip("0") && !digits()) return false;
  if (skip(".") && !digits()) return false;
  if (skip("eE")) {
    skip("+-");
    if (!digits()) return false;
  }
  return at == text.size();
}

std::optional<ValueEdit> CastTo(std::string_view type) {
  if (type == "integer") return [](std::string_view value) { return ToNumber(value, true); };
  if (type == "number") return [](std::string_view value) { return ToNumber(value, false); };
  if (type == "string") return ToText;
  if (type == "boolean") return ToBoolean;
  return std::nullopt;
}

ValueEdit RedactValue() {
  return [](std::string_view) -> Edited { return "\"***\""; };
}

ValueEdit HashValue(std::string key) {
  return [key = std::move(key)](std::string_view value) -> Edited {
    const std::string text = JsonScalarText(value).value_or(std::string(value));
    return Quoted(key.empty() ? Sha256Hex(text) : Hex(HmacSha256(key, text)));
  };
}

}  // namespace muster::pipeline
