#include "lucene/base64.h"

#include <cstdint>

namespace muster::lucene {
namespace {

constexpr std::string_view kUrlAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::optional<uint32_t> Digit(char c) {
  if (c == '+') c = '-';
  if (c == '/') c = '_';
  const size_t at = kUrlAlphabet.find(c);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<uint32_t>(at);
}

}  // namespace

std::optional<std::string> DecodeBase64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    const auto digit = Digit(c);
    if (!digit) return std::nullopt;
    bits = bits << 6 | *digit;
    have += 6;
    if (have >= 8) {
      have -= 8;
      bytes += static_cast<char>(bits >> have);
    }
  }
  return bytes;
}

void AppendBase64Url(std::string_view bytes, std::string& text) {
  uint32_t bits = 0;
  int have = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(c);
    have += 8;
    while (have >= 6) {
      have -= 6;
      text += kUrlAlphabet[bits >> have & 63];
    }
  }
  if (have > 0) text += kUrlAlphabet[bits << (6 - have) & 63];
}

std::string EncodeBase64Url(std::string_view bytes) {
  std::string text;
  AppendBase64Url(bytes, text);
  return text;
}

}  // namespace muster::lucene
