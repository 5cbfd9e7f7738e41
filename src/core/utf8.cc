#include "core/utf8.h"

#include <algorithm>

namespace muster {
namespace {

// The length of the well-formed character at the start of `text`; 0 if ill-formed.
size_t CharacterBytes(std::string_view text) {
  auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  auto between = [&](size_t i, unsigned low, unsigned high) {
    return at(i) >= low && at(i) <= high;
  };
  if (text.empty()) return 0;
  unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return between(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    unsigned low = lead == 0xE0 ? 0xA0 : 0x80;
    unsigned high = lead == 0xED ? 0x9F : 0xBF;
    return between(1, low, high) && between(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    unsigned low = lead == 0xF0 ? 0x90 : 0x80;
    unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
    return between(1, low, high) && between(2, 0x80, 0xBF) && between(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

}  // namespace

size_t ValidUtf8Prefix(std::string_view text) {
  size_t valid = 0;
  const auto skip_ascii = [&] {
    while (valid < text.size() && static_cast<unsigned char>(text[valid]) < 0x80) ++valid;
  };
  skip_ascii();
  while (size_t bytes = CharacterBytes(text.substr(valid))) {
    valid += bytes;
    skip_ascii();
  }
  return valid;
}

char32_t TakeCodePoint(std::string_view& text) {
  size_t bytes = CharacterBytes(text);
  if (bytes == 0) {
    text.remove_prefix(std::min<size_t>(1, text.size()));
    return U'\uFFFD';
  }
  auto lead = static_cast<unsigned char>(text[0]);
  char32_t point = bytes == 1 ? lead : lead & (0x7FU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    point = (point << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  text.remove_prefix(bytes);
  return point;
}

TextPosition PositionOf(std::string_view text, size_t offset) {
  std::string_view before = text.substr(0, offset);
  TextPosition position;
  position.line += static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  if (size_t newline = before.rfind('\n'); newline != before.npos) {
    before.remove_prefix(newline + 1);
  }
  for (; !before.empty(); ++position.column) TakeCodePoint(before);
  return position;
}

std::string Shortened(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  // Not in the middle of a character, if it is text at all.
  const std::string_view start = text.substr(0, max_bytes);
  const size_t valid = ValidUtf8Prefix(start);
  return std::string(start.substr(0, valid + 3 < max_bytes ? max_bytes : valid)) + "…";
}

std::string AtPosition(std::string_view origin, TextPosition position, std::string_view reason) {
  return std::string(origin) + ":" + std::to_string(position.line) + ":" +
         std::to_string(position.column) + ": " + std::string(reason);
}

}  // namespace muster
