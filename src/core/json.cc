#include "core/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <unordered_map>
#include <vector>

#include "core/file.h"
#include "core/json_tape.h"
#include "core/utf8.h"

namespace muster {
namespace {

// Tracks how far the parser has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

// Builds the tree from parser events; returning false stops the parser.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  enum class Duplicates { kRefused, kLastCounts };

  TreeBuilder(std::string_view text, size_t max_depth, Duplicates duplicates)
      : text_(text), max_depth_(max_depth), duplicates_(duplicates), read_(text.data()) {}

  bool Parse() {
    return nlohmann::json::sax_parse(CountingIterator(text_.data(), &read_),
                                     CountingIterator(text_.data() + text_.size(), &read_), this);
  }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t& written) override {
    if (duplicates_ == Duplicates::kRefused && written.find_first_of(".eE") == written.npos) {
      // The parser may have read one character past the number.
      return Fail(text_.rfind(written, Read() - written.size()),
                  "the integer does not fit into 64 bits");
    }
    return Add(value);
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return Fail(Read(), "binary data"); }

  bool start_object(std::size_t) override { return Open(Json::object()); }
  bool key(string_t& value) override {
    Level& level = open_.back();
    auto& members = level.container->get_ref<Json::Object&>();
    level.slot = level.Find(members, value);
    if (level.slot == members.size()) {
      members.emplace_back(std::move(value), Json());
    } else if (duplicates_ == Duplicates::kRefused) {
      return Fail(StartOfString(), "the key \"" + value + "\" occurs twice in this object");
    }
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …"
    std::string_view reason = error.what();
    if (size_t end = reason.find("] "); end != reason.npos) reason.remove_prefix(end + 2);
    if (reason.starts_with("parse error")) reason.remove_prefix(reason.find(": ") + 2);
    return Fail(position == 0 ? 0 : position - 1, std::string(reason));
  }

  // "origin:line:column: reason" for text that Parse rejected.
  std::string Failure(std::string_view origin) const {
    return AtPosition(origin, PositionOf(text_, failed_at_), reason_);
  }
  Json TakeRoot() { return std::move(root_); }

 private:
  // An open container. Its address is stable: its parent only grows after it is closed.
  struct Level {
    Json* container;
    size_t slot = 0;  // of an object: where the next value goes
    // An index of keys, once there are too many to scan.
    std::unordered_map<std::string, size_t> index = {};

    // The key's position among the members; their number if it is new.
    size_t Find(const Json::Object& members, const std::string& key) {
      constexpr size_t kFew = 32;
      if (members.size() < kFew) {
        const auto found = std::find_if(members.begin(), members.end(),
                                        [&](const auto& member) { return member.first == key; });
        return static_cast<size_t>(found - members.begin());
      }
      for (size_t i = index.size(); i < members.size(); ++i) index.emplace(members[i].first, i);
      const auto found = index.find(key);
      return found == index.end() ? members.size() : found->second;
    }
  };

  size_t Read() const { return static_cast<size_t>(read_ - text_.data()); }

  bool Fail(size_t offset, std::string reason) {
    failed_at_ = offset;
    reason_ = std::move(reason);
    return false;
  }

  bool Add(Json value) {
    Append(std::move(value));
    return true;
  }

  Json* Append(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = open_.back();
    if (level.container->is_array()) return &level.container->emplace_back(std::move(value));
    Json& slot = level.container->get_ref<Json::Object&>()[level.slot].second;
    slot = std::move(value);
    return &slot;
  }

  bool Open(Json container) {
    if (open_.size() == max_depth_) {
      return Fail(Read() - 1, "nested deeper than " + std::to_string(max_depth_) + " levels");
    }
    open_.push_back({.container = Append(std::move(container))});
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  // The opening quote of the last string read: inside it, every quote is escaped.
  size_t StartOfString() const {
    for (size_t quote = Read() - 1; quote > 0;) {
      quote = text_.rfind('"', quote - 1);
      size_t backslashes = 0;
      while (backslashes < quote && text_[quote - 1 - backslashes] == '\\') ++backslashes;
      if (backslashes % 2 == 0) return quote;
    }
    return 0;
  }

  std::string_view text_;
  size_t max_depth_;
  Duplicates duplicates_;
  const char* read_;
  Json root_;
  std::vector<Level> open_;
  size_t failed_at_ = 0;
  std::string reason_;
};

// The limit of Json::parse: deeper values would need too much stack to copy or compare.
constexpr size_t kMaxDepth = 2'000;

class Printer {
 public:
  Printer(std::string& out, int indent) : out_(out), indent_(indent) {}

  void Print(const Json& json, int depth) {
    switch (json.type()) {
      case Json::Type::kNull:
        out_ += "null";
        break;
      case Json::Type::kBoolean:
        out_ += json.get<bool>() ? "true" : "false";
        break;
      case Json::Type::kInteger:
        PrintInteger(json.get<int64_t>());
        break;
      case Json::Type::kUnsigned:
        PrintInteger(json.get<uint64_t>());
        break;
      case Json::Type::kFloat:
        PrintFloat(json.get<double>());
        break;
      case Json::Type::kString:
        AppendJsonString(out_, json.get_ref<const std::string&>());
        break;
      case Json::Type::kArray:
        PrintList('[', ']', json, depth,
                  [&](const Json::const_iterator& at) { Print(*at, depth + 1); });
        break;
      case Json::Type::kObject:
        PrintList('{', '}', json, depth, [&](const Json::const_iterator& at) {
          AppendJsonString(out_, at.key());
          out_ += indent_ < 0 ? ":" : ": ";
          Print(*at, depth + 1);
        });
        break;
      case Json::Type::kBinary:
        out_ += "\"<binary>\"";
        break;
      case Json::Type::kDiscarded:
        out_ += "<discarded>";
        break;
    }
  }

 private:
  template <class T>
  void PrintInteger(T value) {
    char digits[24];
    out_.append(digits, std::to_chars(digits, std::end(digits), value).ptr);
  }

  void PrintFloat(double value) {
    if (!std::isfinite(value)) {
      out_ += "null";
      return;
    }
    char digits[64];
    out_.append(digits, nlohmann::detail::to_chars(digits, std::end(digits), value));
  }

  template <class PrintElement>
  void PrintList(char open, char close, const Json& list, int depth, PrintElement print) {
    out_ += open;
    for (auto at = list.begin(); at != list.end(); ++at) {
      if (at != list.begin()) out_ += ',';
      NewLine(depth + 1);
      print(at);
    }
    if (!list.empty()) NewLine(depth);
    out_ += close;
  }

  void NewLine(int depth) {
    if (indent_ >= 0) {
      out_.append(1, '\n').append(static_cast<size_t>(depth) * static_cast<size_t>(indent_), ' ');
    }
  }

  std::string& out_;
  int indent_;
};

}  // namespace

Json Json::parse(std::string_view text, std::nullptr_t, bool throws) {
  if (auto json = ReadOrdinaryJson(text, kMaxDepth)) return *std::move(json);
  TreeBuilder builder(text, kMaxDepth, TreeBuilder::Duplicates::kLastCounts);
  if (builder.Parse()) return builder.TakeRoot();
  if (throws) throw Exception(builder.Failure("JSON"));
  Json discarded;
  discarded.type_ = Type::kDiscarded;
  return discarded;
}

bool Json::accept(std::string_view text) { return nlohmann::json::accept(text); }

std::string Json::dump(int indent) const {
  std::string out;
  Printer(out, indent).Print(*this, 0);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.dump(); }

Result<Json> ParseJson(std::string_view text, std::string_view origin, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return Error{Code::kInvalid, std::string(origin) + ": larger than the limit of " +
                                     std::to_string(limits.bytes) + " bytes"};
  }
  if (auto json = ReadOrdinaryJson(text, limits.depth)) return *std::move(json);
  TreeBuilder builder(text, limits.depth, TreeBuilder::Duplicates::kRefused);
  if (!builder.Parse()) return Error{Code::kInvalid, builder.Failure(origin)};
  return builder.TakeRoot();
}

Result<Json> ReadJsonFile(const std::string& path, const JsonLimits& limits) {
  MUSTER_ASSIGN(std::string text, ReadFile(path, limits.bytes));
  return ParseJson(text, path, limits);
}

std::string ToJsonText(const Json& json) { return json.dump(); }

std::string ToAsciiJsonString(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string JsonPointerTo(std::string_view parent, std::string_view name) {
  std::string pointer = std::string(parent) + "/";
  for (const char c : name) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

void AppendJsonString(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const std::string_view valid = text.substr(0, ValidUtf8Prefix(text));
    size_t plain = 0;  // start of the bytes that can be copied verbatim
    for (size_t i = 0; i < valid.size(); ++i) {
      const char c = valid[i];
      if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
      out.append(valid, plain, i - plain);
      plain = i + 1;
      out += '\\';
      switch (c) {
        case '"':
        case '\\':
          out += c;
          break;
        case '\b':
          out += 'b';
          break;
        case '\f':
          out += 'f';
          break;
        case '\n':
          out += 'n';
          break;
        case '\r':
          out += 'r';
          break;
        case '\t':
          out += 't';
          break;
        default:
          out += "u00";
          out += kHex[c >> 4];
          out += kHex[c & 15];
      }
    }
    out.append(valid, plain);
    text.remove_prefix(valid.size());
    if (!text.empty()) {
      out += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    }
  }
  out += '"';
}

}  // namespace muster
