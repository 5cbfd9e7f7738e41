#include "base/json.h"

#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/utf8.h"

namespace muster {
namespace {

// Lets the handler know how far the parser has read.
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

// Builds the tree from the parser's events; a false answer stops the parser.
class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(std::string_view text, size_t max_depth)
      : text_(text), max_depth_(max_depth), read_(text.data()) {}

  CountingIterator Begin() { return {text_.data(), &read_}; }
  CountingIterator End() { return {text_.data() + text_.size(), &read_}; }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t& written) override {
    if (written.find_first_of(".eE") == written.npos) {
      // The parser may have read one character beyond the number.
      return Fail(text_.rfind(written, Read() - written.size()),
                  "the integer does not fit into 64 bits");
    }
    return Add(value);
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return Fail(Read(), "binary data"); }

  bool start_object(std::size_t) override { return Open(Json::object()); }
  bool key(string_t& value) override {
    if (!keys_.back().insert(value).second) {
      return Fail(StartOfString(), "the key \"" + value + "\" stands twice in this object");
    }
    key_ = std::move(value);
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

  struct Failure {
    size_t offset;
    std::string reason;
  };
  const std::optional<Failure>& failure() const { return failure_; }
  Json TakeRoot() { return std::move(root_); }

 private:
  size_t Read() const { return static_cast<size_t>(read_ - text_.data()); }

  bool Fail(size_t offset, std::string reason) {
    failure_ = Failure{offset, std::move(reason)};
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
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    // ordered_map's own emplace searches all keys; duplicates were already refused.
    auto& members = static_cast<Json::object_t::Container&>(parent.get_ref<Json::object_t&>());
    return &members.emplace_back(std::move(key_), std::move(value)).second;
  }

  // A container stays where it is while it is open, since its parent grows only after it is closed.
  bool Open(Json container) {
    if (open_.size() == max_depth_) {
      return Fail(Read() - 1, "nested deeper than " + std::to_string(max_depth_) + " levels");
    }
    open_.push_back(Append(std::move(container)));
    keys_.emplace_back();
    return true;
  }

  bool Close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  // The opening quote of the string that was read last: inside, every quote is escaped.
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
  const char* read_;
  Json root_;
  std::vector<Json*> open_;
  std::vector<std::set<std::string>> keys_;
  std::string key_;
  std::optional<Failure> failure_;
};

}  // namespace

Result<Json> ParseJson(std::string_view text, std::string_view origin, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return Error{Code::kInvalid, std::string(origin) + ": larger than the limit of " +
                                     std::to_string(limits.bytes) + " bytes"};
  }
  TreeBuilder builder(text, limits.depth);
  Json::sax_parse(builder.Begin(), builder.End(), &builder);
  if (const auto& failure = builder.failure()) {
    return Error{Code::kInvalid,
                 AtPosition(origin, PositionOf(text, failure->offset), failure->reason)};
  }
  return builder.TakeRoot();
}

Result<Json> ReadJsonFile(const std::string& path, const JsonLimits& limits) {
  MUSTER_ASSIGN(std::string text, ReadFile(path, limits.bytes));
  return ParseJson(text, path, limits);
}

std::string ToJsonText(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void AppendJsonString(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const std::string_view valid = text.substr(0, ValidUtf8Prefix(text));
    size_t plain = 0;  // where the bytes begin that can be copied as they are
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
