#include "pipeline/json_scan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace muster {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// After the closing quote of the string that begins at `at`.
size_t SkipString(std::string_view text, size_t at) {
  for (size_t from = at + 1; from < text.size();) {
    const void* const found = std::memchr(text.data() + from, '"', text.size() - from);
    if (found == nullptr) return text.size();
    const auto quote = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    size_t backslashes = 0;
    while (quote - backslashes > at + 1 && text[quote - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return quote + 1;
    from = quote + 1;
  }
  return text.size();
}

enum : unsigned char { kOther, kOpen, kClose, kQuote };

constexpr std::array<unsigned char, 256> kStructure = [] {
  std::array<unsigned char, 256> table{};
  table['{'] = table['['] = kOpen;
  table['}'] = table[']'] = kClose;
  table['"'] = kQuote;
  return table;
}();

size_t SkipContainer(std::string_view text, size_t at) {
  size_t depth = 0;
  while (at < text.size()) {
    switch (kStructure[static_cast<unsigned char>(text[at])]) {
      case kOpen:
        ++depth;
        ++at;
        break;
      case kClose:
        ++at;
        if (--depth == 0) return at;
        break;
      case kQuote:
        at = SkipString(text, at);
        break;
      default:
        ++at;
    }
  }
  return at;
}

uint32_t HexValue(std::string_view digits) {
  uint32_t value = 0;
  for (const char c : digits) {
    value <<= 4;
    if (c >= '0' && c <= '9') value += static_cast<uint32_t>(c - '0');
    if (c >= 'a' && c <= 'f') value += static_cast<uint32_t>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') value += static_cast<uint32_t>(c - 'A') + 10;
  }
  return value;
}

void AppendUtf8(std::string& text, uint32_t code) {
  const auto byte = [&](uint32_t value) { text += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6);
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

constexpr uint32_t kReplacement = 0xFFFD;
bool IsHighSurrogate(uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool IsLowSurrogate(uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

// The code point of the \u escape whose digits begin at `at`, which moves behind them.
uint32_t TakeEscaped(std::string_view raw, size_t& at) {
  const uint32_t first = HexValue(raw.substr(at, 4));
  at += 4;
  if (IsLowSurrogate(first)) return kReplacement;
  if (!IsHighSurrogate(first)) return first;
  if (at + 6 > raw.size() || raw[at] != '\\' || raw[at + 1] != 'u') return kReplacement;
  const uint32_t second = HexValue(raw.substr(at + 2, 4));
  if (!IsLowSurrogate(second)) return kReplacement;
  at += 6;
  return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}

}  // namespace

size_t SkipJsonSpace(std::string_view text, size_t at) {
  while (at < text.size() && IsSpace(text[at])) ++at;
  return at;
}

size_t SkipJsonValue(std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  switch (kStructure[static_cast<unsigned char>(text[at])]) {
    case kQuote:
      return SkipString(text, at);
    case kOpen:
      return SkipContainer(text, at);
    default:
      while (at < text.size() && text[at] != ',' && text[at] != '}' && text[at] != ']' &&
             !IsSpace(text[at])) {
        ++at;
      }
      return at;
  }
}

std::optional<JsonMember> JsonMembers::Next() {
  at_ = SkipJsonSpace(text_, at_);
  if (at_ < text_.size() && text_[at_] == ',') at_ = SkipJsonSpace(text_, at_ + 1);
  if (at_ >= text_.size() || text_[at_] != '"') return std::nullopt;
  const size_t key = at_ + 1;
  const size_t after_key = SkipString(text_, at_);
  if (after_key <= key || after_key >= text_.size()) return std::nullopt;
  size_t value = SkipJsonSpace(text_, after_key);
  if (value >= text_.size()) return std::nullopt;
  value = SkipJsonSpace(text_, value + 1);  // the colon
  at_ = SkipJsonValue(text_, value);
  if (value > at_) return std::nullopt;
  return JsonMember{text_.substr(key, after_key - 1 - key), text_.substr(value, at_ - value)};
}

std::optional<std::string_view> JsonElements::Next() {
  at_ = SkipJsonSpace(text_, at_);
  if (at_ < text_.size() && text_[at_] == ',') at_ = SkipJsonSpace(text_, at_ + 1);
  if (at_ >= text_.size() || text_[at_] == ']') return std::nullopt;
  const size_t begin = at_;
  at_ = SkipJsonValue(text_, begin);
  if (at_ == begin) return std::nullopt;
  return text_.substr(begin, at_ - begin);
}

bool JsonKeyIs(std::string_view raw_key, std::string_view name) {
  if (raw_key == name) return name.find('\\') == std::string_view::npos;
  return raw_key.find('\\') != std::string_view::npos && UnescapeJson(raw_key) == name;
}

std::string UnescapeJson(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (size_t at = 0; at < raw.size();) {
    const size_t plain = std::min(raw.find('\\', at), raw.size());
    text.append(raw, at, plain - at);
    at = plain;
    if (at + 1 >= raw.size()) break;
    const char c = raw[at + 1];
    at += 2;
    switch (c) {
      case 'b':
        text += '\b';
        break;
      case 'f':
        text += '\f';
        break;
      case 'n':
        text += '\n';
        break;
      case 'r':
        text += '\r';
        break;
      case 't':
        text += '\t';
        break;
      case 'u':
        AppendUtf8(text, TakeEscaped(raw, at));
        break;
      default:
        text += c;
    }
  }
  return text;
}

std::optional<std::string> JsonScalarText(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"') {
    return UnescapeJson(value.substr(1, value.size() - 2));
  }
  if (value.empty() || value == "null" || value.front() == '{' || value.front() == '[') {
    return std::nullopt;
  }
  return std::string(value);
}

}  // namespace muster
