#include "core/signature.h"

#include <algorithm>
#include <cctype>

namespace muster {
namespace {

constexpr size_t kMaxBytes = 200;
constexpr size_t kMaxQuoted = 300;

bool IsWordByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// A word that holds a digit is a number or an id: 42, 0x7f3a, m-17, 7f3a9c1e.
bool Varies(std::string_view word) {
  return std::any_of(word.begin(), word.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

}  // namespace

std::string SignatureOf(std::string_view message) {
  std::string signature;
  for (size_t i = 0; i < message.size() && signature.size() < kMaxBytes;) {
    const char c = message[i];
    // An apostrophe within a word does not open a quotation.
    const bool within = i > 0 && IsWordByte(message[i - 1]);
    if (c == '"' || c == '`' || (c == '\'' && !within)) {
      const size_t end = message.find(c, i + 1);
      if (end != message.npos && end - i <= kMaxQuoted) {
        signature += "'…'";
        i = end + 1;
        continue;
      }
    }
    if (IsWordByte(c)) {
      size_t end = i;
      while (end < message.size() && IsWordByte(message[end])) ++end;
      const std::string_view word = message.substr(i, end - i);
      if (!Varies(word)) {
        signature += word;
      } else if (!signature.ends_with('#')) {
        signature += '#';
      }
      i = end;
      continue;
    }
    if (c == '\n') break;
    signature += c;
    ++i;
  }
  if (signature.size() > kMaxBytes) {
    size_t end = kMaxBytes;
    while (end > 0 && (static_cast<unsigned char>(signature[end]) & 0xc0) == 0x80) --end;
    signature.resize(end);
  }
  while (signature.ends_with(' ')) signature.pop_back();
  return signature.empty() ? "(no message)" : signature;
}

}  // namespace muster
