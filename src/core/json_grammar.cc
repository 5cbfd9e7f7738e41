#include "core/json_grammar.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace muster {
namespace {

bool IsDigit(std::string_view text, size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

size_t SkipDigits(std::string_view text, size_t at) {
  while (IsDigit(text, at)) ++at;
  return at;
}

// The end of the number at `at`; `at` if there is none.
size_t SkipNumber(std::string_view text, size_t at) {
  const size_t whole = at + (text[at] == '-' ? 1 : 0);
  if (!IsDigit(text, whole)) return at;
  size_t end = text[whole] == '0' ? whole + 1 : SkipDigits(text, whole);
  if (end < text.size() && text[end] == '.' && IsDigit(text, end + 1)) {
    end = SkipDigits(text, end + 1);
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const bool is_signed = end + 1 < text.size() && (text[end + 1] == '+' || text[end + 1] == '-');
    const size_t digits = end + (is_signed ? 2 : 1);
    if (IsDigit(text, digits)) end = SkipDigits(text, digits);
  }
  return end;
}

// The same text with 0 for each number.
std::string WithoutNumbers(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (const size_t number = SkipNumber(text, at); number > at) {
      plain += "0 ";  // the space ends it, whatever follows
      at = number;
      continue;
    }
    plain += text.substr(at, end - at);
    at = end;
  }
  return plain;
}

}  // namespace

bool IsJson(std::string_view text) {
  // The parser refuses numbers that are no doubles, and has no option to do otherwise.
  return nlohmann::json::accept(text) || nlohmann::json::accept(WithoutNumbers(text));
}

}  // namespace muster
