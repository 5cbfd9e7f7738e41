#include "states/asl/source.h"

#include <algorithm>
#include <set>

namespace muster::states {
namespace {

// More than any definition on AWS has, and far below what overflows a stack.
constexpr int kMaxDepth = 400;

class Reader {
 public:
  explicit Reader(Source& source) : source_(source), text_(source.text) {}

  bool Whole(Node& node) {
    if (!Value(node, 0)) return false;
    SkipSpaces();
    return at_ == text_.size() || Fail("there is text after the value");
  }

 private:
  bool Value(Node& node, int depth) {
    SkipSpaces();
    node.offset = at_;
    if (at_ == text_.size()) return Fail("the text ends where a value should be");
    if (depth > kMaxDepth)
      return Fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    if (text_[at_] == '{') return Object(node, depth);
    if (text_[at_] == '[') return Array(node, depth);
    return Scalar(node);
  }

  bool Object(Node& node, int depth) {
    node.kind = Node::Kind::kObject;
    ++at_;
    std::set<std::string> keys;
    for (;;) {
      SkipSpaces();
      if (node.members.empty() && Take('}')) return true;
      if (!node.members.empty()) {
        if (Take('}')) return true;
        if (!Take(',')) return Fail("expected ',' or '}'");
        SkipSpaces();
      }
      const size_t key_offset = at_;
      Node key;
      if (at_ == text_.size() || text_[at_] != '"') return Fail("expected a key in quotes");
      if (!Scalar(key)) return false;
      if (!keys.insert(key.text()).second) {
        source_.Add(key_offset, "the key \"" + key.text() + "\" occurs twice in this object");
      }
      SkipSpaces();
      if (!Take(':')) return Fail("expected ':'");
      node.members.push_back({key.text(), key_offset, {}});
      if (!Value(node.members.back().value, depth + 1)) return false;
    }
  }

  bool Array(Node& node, int depth) {
    node.kind = Node::Kind::kArray;
    ++at_;
    for (;;) {
      SkipSpaces();
      if (Take(']')) return true;
      if (!node.items.empty() && !Take(',')) return Fail("expected ',' or ']'");
      node.items.emplace_back();
      if (!Value(node.items.back(), depth + 1)) return false;
    }
  }

  // The JSON library parses the scalar, once its end is known.
  bool Scalar(Node& node) {
    const size_t start = at_;
    if (text_[at_] == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\') ++at_;
      }
      if (at_ >= text_.size()) {
        at_ = start;
        return Fail("a quote is not closed");
      }
      ++at_;
    } else {
      while (at_ < text_.size() &&
             std::string_view(" \t\r\n,:]}[{\"").find(text_[at_]) == std::string_view::npos) {
        ++at_;
      }
    }
    node.scalar = Json::parse(text_.substr(start, at_ - start), nullptr, false);
    if (!node.scalar.is_discarded()) return true;
    node.scalar = nullptr;
    at_ = start;
    return Fail("this is not a JSON value, or a number that is too large");
  }

  void SkipSpaces() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Fail(std::string message) {
    source_.Add(at_, "not JSON: " + std::move(message));
    return false;
  }

  Source& source_;
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const Node* Node::Find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Json Node::ToJson() const {
  if (kind == Kind::kScalar) return scalar;
  if (kind == Kind::kArray) {
    Json array = Json::array();
    for (const Node& item : items) array.push_back(item.ToJson());
    return array;
  }
  Json object = Json::object();
  for (const Member& member : members) object[member.key] = member.value.ToJson();
  return object;
}

Source Source::Read(std::string_view text) {
  Source source{.text = text, .root = std::make_unique<Node>(), .problems = {}};
  if (const size_t valid = ValidUtf8Prefix(text); valid != text.size()) {
    source.Add(valid, "not JSON: these bytes are not UTF-8");
    source.root.reset();
    return source;
  }
  if (!Reader(source).Whole(*source.root)) source.root.reset();
  return source;
}

void Source::Add(size_t offset, std::string message, bool fatal) {
  problems.push_back({PositionOf(text, offset), std::move(message), fatal});
}

}  // namespace muster::states
