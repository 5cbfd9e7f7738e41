#include "serve/route.h"

namespace muster::serve {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> Decode(std::string_view segment) {
  std::string text;
  for (size_t i = 0; i < segment.size(); ++i) {
    char c = segment[i];
    if (c == '%') {
      if (i + 2 >= segment.size()) return std::nullopt;
      const int high = HexValue(segment[i + 1]);
      const int low = HexValue(segment[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    text += c;
  }
  if (text.empty() || text == "." || text == "..") return std::nullopt;
  return text;
}

// Removes the first segment, with the slash before it, and returns it.
std::optional<std::string_view> TakeSegment(std::string_view& path) {
  if (!path.starts_with('/')) return std::nullopt;
  path.remove_prefix(1);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

}  // namespace

std::string DecodeQueryText(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : HexValue(text[i + 2]);
    if (low >= 0) {
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

std::optional<std::vector<std::string>> MatchPath(std::string_view pattern, std::string_view path) {
  std::vector<std::string> values;
  while (!pattern.empty()) {
    const auto wanted = TakeSegment(pattern);
    const auto given = TakeSegment(path);
    if (!wanted || !given) return std::nullopt;
    if (!wanted->starts_with('{')) {
      if (*wanted != *given) return std::nullopt;
      continue;
    }
    auto value = Decode(*given);
    if (!value) return std::nullopt;
    values.push_back(*std::move(value));
  }
  if (!path.empty()) return std::nullopt;
  return values;
}

}  // namespace muster::serve
