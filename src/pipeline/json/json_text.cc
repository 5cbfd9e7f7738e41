#include "pipeline/json/json_text.h"

#include <array>
#include <bitset>

#include "core/utf8.h"

namespace muster::pipeline {
namespace {

constexpr size_t kMaxDepth = 1000;

enum : unsigned char { kPlain, kQuote, kBackslash, kControl };

// The meaning of each byte inside a string.
constexpr std::array<unsigned char, 256> kInString = [] {
  std::array<unsigned char, 256> table{};
  for (size_t c = 0; c < 0x20; ++c) table[c] = kControl;
  table['"'] = kQuote;
  table['\\'] = kBackslash;
  return table;
}();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Single pass. Reading past the end yields NUL, which is valid nowhere.
class Checker {
 public:
  explicit Checker(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  // Null: valid. Otherwise what is wrong, at offset().
  const char* Object() {
    SkipSpace();
    if (Peek() != '{') return "no JSON object";
    if (const char* wrong = Value()) return wrong;
    SkipSpace();
    return at_ == end_ ? nullptr : "something follows the object";
  }

  const char* at() const { return at_; }

 private:
  char Peek() const { return at_ == end_ ? '\0' : *at_; }

  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  }

  // One value with everything in it. Iterative: a document's depth must not exhaust the stack.
  const char* Value() {
    std::bitset<kMaxDepth> is_object;
    size_t depth = 0;
    for (;;) {
      SkipSpace();
      switch (Peek()) {
        case '{':
        case '[': {
          if (depth == kMaxDepth) return "nested too deeply";
          const bool object = *at_++ == '{';
          is_object[depth++] = object;
          SkipSpace();
          if (Peek() == (object ? '}' : ']')) break;
          if (object) {
            if (const char* wrong = Key()) return wrong;
          }
          continue;
        }
        case '"':
          if (const char* wrong = String()) return wrong;
          if (depth == 0) return nullptr;
          break;
        default:
          if (const char* wrong = Literal()) return wrong;
          if (depth == 0) return nullptr;
          break;
      }
      // After a value, or at the end of an empty container.
      for (;;) {
        SkipSpace();
        const char c = Peek();
        if (c == ',') {
          ++at_;
          if (is_object[depth - 1]) {
            if (const char* wrong = Key()) return wrong;
          }
          break;
        }
        if (c != (is_object[depth - 1] ? '}' : ']')) {
          return at_ == end_ ? "the text ends too early" : "',' or a closing bracket is missing";
        }
        ++at_;
        if (--depth == 0) return nullptr;
      }
    }
  }

  const char* Key() {
    SkipSpace();
    if (Peek() != '"') return at_ == end_ ? "the text ends too early" : "a key is missing";
    if (const char* wrong = String()) return wrong;
    SkipSpace();
    if (Peek() != ':') return "':' is missing";
    ++at_;
    return nullptr;
  }

  const char* String() {
    ++at_;
    for (;;) {
      while (at_ != end_ && kInString[static_cast<unsigned char>(*at_)] == kPlain) ++at_;
      if (at_ == end_) return "a string does not end";
      switch (kInString[static_cast<unsigned char>(*at_)]) {
        case kQuote:
          ++at_;
          return nullptr;
        case kBackslash:
          if (const char* wrong = Escape()) return wrong;
          break;
        default:
          return "a control character in a string";
      }
    }
  }

  const char* Escape() {
    ++at_;
    switch (Peek()) {
      case '"':
      case '\\':
      case '/':
      case 'b':
      case 'f':
      case 'n':
      case 'r':
      case 't':
        ++at_;
        return nullptr;
      case 'u':
        ++at_;
        for (int i = 0; i < 4; ++i, ++at_) {
          if (!IsHexDigit(Peek())) return "a bad escape in a string";
        }
        return nullptr;
      default:
        return "a bad escape in a string";
    }
  }

  const char* Literal() {
    const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
    for (const std::string_view word : {"true", "false", "null"}) {
      if (rest.starts_with(word)) {
        at_ += word.size();
        return nullptr;
      }
    }
    return Number();
  }

  const char* Number() {
    if (Peek() == '-') ++at_;
    if (Peek() == '0') {
      ++at_;
    } else if (!Digits()) {
      return at_ == end_ ? "the text ends too early" : "a value is missing";
    }
    if (Peek() == '.') {
      ++at_;
      if (!Digits()) return "a bad number";
    }
    if (Peek() == 'e' || Peek() == 'E') {
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
      if (!Digits()) return "a bad number";
    }
    return nullptr;
  }

  bool Digits() {
    if (!IsDigit(Peek())) return false;
    while (IsDigit(Peek())) ++at_;
    return true;
  }

  const char* at_;
  const char* end_;
};

Error AtByte(std::string_view what, size_t offset) {
  return {Code::kInvalid, std::string(what) + " at byte " + std::to_string(offset + 1)};
}

void AppendEscape(std::string& json, char c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  switch (c) {
    case '\n':
      json += "\\n";
      break;
    case '\r':
      json += "\\r";
      break;
    case '\t':
      json += "\\t";
      break;
    case '"':
    case '\\':
      json += {'\\', c};
      break;
    default:
      json += "\\u00";
      json += {kDigits[c >> 4], kDigits[c & 15]};
  }
}

void AppendEscaped(std::string& json, std::string_view text) {
  size_t copied = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (kInString[static_cast<unsigned char>(text[i])] == kPlain) continue;
    json.append(text, copied, i - copied);
    AppendEscape(json, text[i]);
    copied = i + 1;
  }
  json.append(text, copied);
}

}  // namespace

Status CheckJsonObject(std::string_view text) {
  if (const size_t valid = ValidUtf8Prefix(text); valid != text.size()) {
    return AtByte("invalid UTF-8", valid);
  }
  Checker checker(text);
  if (const char* wrong = checker.Object()) {
    return AtByte("invalid JSON: " + std::string(wrong),
                  static_cast<size_t>(checker.at() - text.data()));
  }
  return {};
}

void AppendUtf8JsonString(std::string& json, std::string_view text) {
  json += '"';
  AppendEscaped(json, text);
  json += '"';
}

}  // namespace muster::pipeline
