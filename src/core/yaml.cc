#include "core/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "core/file.h"
#include "core/json.h"
#include "core/json_grammar.h"

namespace muster {
namespace {

// Stops yaml-cpp's parser from inside an event; caught in ParseYaml.
struct Refusal {
  TextPosition position;
  std::string reason;
};

bool IsJsonNumber(std::string_view text) {
  return text.find_first_of("-0123456789") == 0 && IsJson(text);
}

size_t CountNodes(const YamlNode& node) {
  size_t count = 1;
  for (const YamlNode& item : node.items) count += CountNodes(item);
  for (const YamlEntry& entry : node.entries) count += 1 + CountNodes(entry.value);
  return count;
}

size_t DepthOf(const YamlNode& node) {
  size_t depth = 0;
  for (const YamlNode& item : node.items) depth = std::max(depth, DepthOf(item));
  for (const YamlEntry& entry : node.entries) depth = std::max(depth, DepthOf(entry.value));
  bool container = node.kind == YamlNode::Kind::kSequence || node.kind == YamlNode::Kind::kMap;
  return depth + (container ? 1 : 0);
}

// Maps byte offsets to positions. Every node needs one, and all may be on one line: characters are
// counted once, per block of bytes.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {
    size_t characters = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (i % kBlock == 0) characters_before_.push_back(characters);
      if (text[i] == '\n') lines_.push_back(i + 1);
      if (BeginsCharacter(text[i])) ++characters;
    }
    characters_before_.push_back(characters);
  }

  // From a line and a byte within it, both from 0.
  TextPosition At(size_t line, size_t byte) const {
    if (line >= lines_.size()) return {line + 1, byte + 1};
    const size_t begin = lines_[line];
    const size_t end = line + 1 < lines_.size() ? lines_[line + 1] - 1 : text_.size();
    return {line + 1, 1 + CharactersBefore(std::min(begin + byte, end)) - CharactersBefore(begin)};
  }

  TextPosition End() const { return At(lines_.size() - 1, text_.size()); }

 private:
  static constexpr size_t kBlock = 256;

  static bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

  size_t CharactersBefore(size_t byte) const {
    const std::string_view block = text_.substr(byte - byte % kBlock, byte % kBlock);
    return characters_before_[byte / kBlock] +
           static_cast<size_t>(std::count_if(block.begin(), block.end(), BeginsCharacter));
  }

  std::string_view text_;                  // UTF-8
  std::vector<size_t> lines_ = {0};        // where each begins
  std::vector<size_t> characters_before_;  // each block
};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const YamlLimits& limits) : limits_(limits), places_(text) {}

  // yaml-cpp counts from 0, and columns in bytes.
  TextPosition PositionAt(const YAML::Mark& mark) const {
    if (mark.is_null()) return places_.End();
    return places_.At(static_cast<size_t>(mark.line), static_cast<size_t>(mark.column));
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw Refusal{PositionAt(mark), "a second document begins here"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Complete(MakeNode(YamlNode::Kind::kNull, mark), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = MakeNode(YamlNode::Kind::kScalar, mark);
    node.text = value;
    // yaml-cpp's own tags: "?" for a plain scalar, "!" for a quoted one.
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!node.quoted && tag != "?" && !tag.empty()) RefuseTag(mark, tag);
    Complete(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto anchored = anchors_.find(anchor);
    if (anchored == anchors_.end()) {
      throw Refusal{PositionAt(mark), "the alias refers to a value that contains it"};
    }
    Spend(CountNodes(anchored->second), mark);
    if (open_.size() + DepthOf(anchored->second) > limits_.depth) RefuseDepth(mark);
    YamlNode copy = anchored->second;
    copy.position = PositionAt(mark);
    Add(std::move(copy));
  }

  YamlNode TakeRoot() { return std::move(root_); }

 private:
  struct OpenNode {
    YamlNode node;
    YAML::anchor_t anchor;
    std::optional<YamlNode> key = {};  // of a map: its value not read yet
    std::map<std::string, TextPosition> keys = {};
  };

  [[noreturn]] void RefuseTag(const YAML::Mark& mark, const std::string& tag) const {
    throw Refusal{PositionAt(mark), "the tag " + tag + " is not supported"};
  }

  [[noreturn]] void RefuseDepth(const YAML::Mark& mark) const {
    throw Refusal{PositionAt(mark),
                  "nested deeper than " + std::to_string(limits_.depth) + " levels"};
  }

  void Spend(size_t nodes, const YAML::Mark& mark) {
    nodes_ += nodes;
    if (nodes_ > limits_.nodes) {
      throw Refusal{PositionAt(mark),
                    "more than " + std::to_string(limits_.nodes) + " values, aliases expanded"};
    }
  }

  YamlNode MakeNode(YamlNode::Kind kind, const YAML::Mark& mark) {
    Spend(1, mark);
    YamlNode node;
    node.kind = kind;
    node.position = PositionAt(mark);
    return node;
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    if (tag != "?" && tag != "!" && !tag.empty()) RefuseTag(mark, tag);
    if (open_.size() == limits_.depth) RefuseDepth(mark);
    open_.push_back({MakeNode(kind, mark), anchor});
  }

  void Close() {
    OpenNode closed = std::move(open_.back());
    open_.pop_back();
    Complete(std::move(closed.node), closed.anchor);
  }

  void Complete(YamlNode node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      // The copy counts too, so that nested anchors cannot exceed the memory limit.
      Spend(CountNodes(node), YAML::Mark::null_mark());
      anchors_[anchor] = node;
    }
    Add(std::move(node));
  }

  void Add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::kSequence) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key) {
      parent.node.entries.push_back({*std::move(parent.key), std::move(node)});
      parent.key.reset();
    } else {
      AddKey(parent, std::move(node));
    }
  }

  void AddKey(OpenNode& map, YamlNode key) {
    if (key.kind != YamlNode::Kind::kScalar) {
      throw Refusal{key.position, "a key must be a plain or quoted string"};
    }
    auto [first, is_new] = map.keys.emplace(key.text, key.position);
    if (!is_new) {
      throw Refusal{key.position, "the key \"" + key.text +
                                      "\" occurs twice in this map, first at " +
                                      std::to_string(first->second.line) + ":" +
                                      std::to_string(first->second.column)};
    }
    map.key = std::move(key);
  }

  const YamlLimits& limits_;
  const Places places_;
  int documents_ = 0;
  size_t nodes_ = 0;
  YamlNode root_;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
};

Error Invalid(std::string_view origin, TextPosition position, std::string_view reason) {
  return Error{Code::kInvalid, AtPosition(origin, position, reason)};
}

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key.text == key) return &entry.value;
  }
  return nullptr;
}

Error YamlDocument::At(const YamlNode& node, std::string_view reason) const {
  return Invalid(origin, node.position, reason);
}

Result<YamlDocument> ParseYaml(std::string_view text, std::string_view origin,
                               const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    return Error{Code::kInvalid, std::string(origin) + ": larger than the limit of " +
                                     std::to_string(limits.bytes) + " bytes"};
  }
  // yaml-cpp would take other bytes for another encoding, or replace them silently.
  size_t good = std::min(ValidUtf8Prefix(text), text.find('\0'));
  if (good < text.size()) {
    return Invalid(origin, PositionOf(text, good), "a byte that is not UTF-8 text");
  }
  TreeBuilder builder(text, limits);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refusal& refusal) {
    return Invalid(origin, refusal.position, refusal.reason);
  } catch (const YAML::Exception& error) {
    return Invalid(origin, builder.PositionAt(error.mark), error.msg);
  }
  return YamlDocument{std::string(origin), builder.TakeRoot()};
}

Result<YamlDocument> ReadYamlFile(const std::string& path, const YamlLimits& limits) {
  MUSTER_ASSIGN(std::string text, ReadFile(path, limits.bytes));
  return ParseYaml(text, path, limits);
}

std::string YamlToJson(const YamlNode& node) {
  std::string json;
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "null";
    case YamlNode::Kind::kSequence:
      json = "[";
      for (const YamlNode& item : node.items) {
        json += (json.size() > 1 ? "," : "") + YamlToJson(item);
      }
      return json + "]";
    case YamlNode::Kind::kMap:
      json = "{";
      for (const YamlEntry& entry : node.entries) {
        if (json.size() > 1) json += ',';
        AppendJsonString(json, entry.key.text);
        json += ':' + YamlToJson(entry.value);
      }
      return json + "}";
    case YamlNode::Kind::kScalar:
      break;
  }
  const bool is_literal = !node.quoted && (node.text == "true" || node.text == "false" ||
                                           node.text == "null" || IsJsonNumber(node.text));
  if (is_literal) return node.text;
  AppendJsonString(json, node.text);
  return json;
}

}  // namespace muster
