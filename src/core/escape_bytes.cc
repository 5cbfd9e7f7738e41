#include "core/escape_bytes.h"

#include "core/utf8.h"

namespace muster {
namespace {

void AppendEscaped(std::string& text, char byte) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(byte);
  text += {'%', kDigits[value >> 4], kDigits[value & 15]};
}

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

}  // namespace

std::string EscapeBytes(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t valid = ValidUtf8Prefix(bytes);
    for (const char c : bytes.substr(0, valid)) {
      if (c == '%' || c == 0x7f || (c >= 0 && c < 0x20)) {
        AppendEscaped(text, c);
      } else {
        text += c;
      }
    }
    bytes.remove_prefix(valid);
    if (!bytes.empty()) {
      AppendEscaped(text, bytes.front());
      bytes.remove_prefix(1);
    }
  }
  return text;
}

std::optional<std::string> UnescapeBytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const auto high = HexDigit(text[i + 1]);
    const auto low = HexDigit(text[i + 2]);
    if (!high || !low) return std::nullopt;
    bytes += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return bytes;
}

}  // namespace muster
