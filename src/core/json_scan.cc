#include "core/json_scan.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace muster {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

constexpr size_t kBlock = 16;

// Classifies the bytes of a block, one bit each.
struct BlockBits {
  uint32_t quotes = 0;
  uint32_t escapes = 0;
  uint32_t opening = 0;  // brackets of both kinds
  uint32_t closing = 0;
};

// '[' and ']' differ from '{' and '}' only in this bit, which is set in every other byte outside
// strings.
constexpr char kBraceBit = 0x20;

#if defined(__SSE2__)
BlockBits ReadBlock(const char* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  const __m128i braces = _mm_or_si128(bytes, _mm_set1_epi8(kBraceBit));
  const auto where = [](__m128i block, char c) {
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8(c))));
  };
  return {where(bytes, '"'), where(bytes, '\\'), where(braces, '{'), where(braces, '}')};
}
#else
BlockBits ReadBlock(const char* from) {
  BlockBits bits;
  for (size_t i = 0; i < kBlock; ++i) {
    const uint32_t bit = uint32_t{1} << i;
    if (from[i] == '"') bits.quotes |= bit;
    if (from[i] == '\\') bits.escapes |= bit;
    if ((from[i] | kBraceBit) == '{') bits.opening |= bit;
    if ((from[i] | kBraceBit) == '}') bits.closing |= bit;
  }
  return bits;
}
#endif

// The position after the closing quote of the string at `at`.
size_t SkipString(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    for (; at + kBlock <= text.size(); at += kBlock) {
      const BlockBits bits = ReadBlock(text.data() + at);
      if (const uint32_t found = bits.quotes | bits.escapes; found != 0) {
        at += static_cast<size_t>(std::countr_zero(found));
        break;
      }
    }
    if (at < text.size() && text[at] == '"') return at + 1;
    if (at < text.size() && text[at] == '\\') ++at;
  }
  return text.size();
}

// Not every target CPU has a popcount instruction.
int CountFew(uint32_t bits) {
  int count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}

// Tracks nesting depth from a container's opening bracket on.
class ContainerDepth {
 public:
  // True: that was its closing bracket.
  bool Take(char c) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '"') {
      in_string_ = !in_string_;
    } else if (in_string_) {
      escaped_ = c == '\\';
    } else if ((c | kBraceBit) == '{') {
      ++depth_;
    } else if ((c | kBraceBit) == '}') {
      return --depth_ == 0;
    }
    return false;
  }

  // Consumes a whole block at once. False: it cannot, or the container may end in this block.
  bool TakeBlock(const BlockBits& bits) {
    if (escaped_ || bits.escapes != 0) return false;
    // Bits are set from each opening quote up to the closing one.
    uint32_t strings = bits.quotes;
    for (const int shift : {1, 2, 4, 8}) strings ^= strings << shift;
    if (in_string_) strings = ~strings;
    strings &= (uint32_t{1} << kBlock) - 1;
    const int closing = CountFew(bits.closing & ~strings);
    if (closing >= depth_) return false;
    depth_ += CountFew(bits.opening & ~strings) - closing;
    in_string_ = (strings >> (kBlock - 1) & 1) != 0;
    return true;
  }

 private:
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

size_t SkipContainer(std::string_view text, size_t at) {
  ContainerDepth depth;
  while (at < text.size()) {
    const bool has_block = at + kBlock <= text.size();
    if (has_block && depth.TakeBlock(ReadBlock(text.data() + at))) {
      at += kBlock;
      continue;
    }
    const size_t end = has_block ? at + kBlock : text.size();
    while (at < end) {
      if (depth.Take(text[at++])) return at;
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

// The code point of the \u escape whose digits begin at `at`; advances `at` past them.
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
  if (text[at] == '"') return SkipString(text, at);
  if (text[at] == '{' || text[at] == '[') return SkipContainer(text, at);
  while (at < text.size() && text[at] != ',' && text[at] != '}' && text[at] != ']' &&
         !IsSpace(text[at])) {
    ++at;
  }
  return at;
}

// The hottest function of a transform: all that it calls is inlined, however large its group is.
[[gnu::flatten]] std::optional<JsonMember> JsonMembers::Next() {
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
  // An escape is longer than the character it encodes.
  return raw_key.size() > name.size() && raw_key.find('\\') != std::string_view::npos &&
         UnescapeJson(raw_key) == name;
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
