#include "task/aws/aws_xml.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace muster::task {
namespace {

constexpr int kMaxDepth = 50;

using Children = std::vector<std::pair<std::string, Json>>;

void AppendUtf8(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | (code >> 18));
    text += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// "amp", "#10" or "#xA". False: not one of XML's own.
bool AppendEntity(std::string& text, std::string_view name) {
  constexpr std::pair<std::string_view, char> kNamed[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [known, character] : kNamed) {
    if (name == known) {
      text += character;
      return true;
    }
  }
  if (!name.starts_with('#')) return false;
  const bool hex = name.starts_with("#x");
  name.remove_prefix(hex ? 2 : 1);
  uint32_t code = 0;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), code, hex ? 16 : 10);
  if (error != std::errc() || end != name.data() + name.size() || code == 0 || code > 0x10FFFF) {
    return false;
  }
  AppendUtf8(text, code);
  return true;
}

Json Shape(Children children) {
  bool all_members = true;
  bool all_entries = true;
  for (const auto& [name, value] : children) {
    all_members = all_members && name == "member";
    all_entries = all_entries && name == "entry" && value.is_object() && value.size() == 2;
  }
  if (all_members) {
    Json list = Json::array();
    for (auto& child : children) list.push_back(std::move(child.second));
    return list;
  }
  Json object = Json::object();
  for (auto& [name, value] : children) {
    if (all_entries) {
      object[value.begin()->is_string() ? value.begin()->get<std::string>() : ""] =
          std::next(value.begin()).value();
    } else if (!object.contains(name)) {
      object[name] = std::move(value);
    } else {
      Json& known = object[name];
      if (!known.is_array()) known = Json::array({known});
      known.push_back(std::move(value));
    }
  }
  return object;
}

class Parser {
 public:
  explicit Parser(std::string_view rest) : rest_(rest) {}

  Result<Json> Document() {
    MUSTER_TRY(SkipAside());
    if (!rest_.starts_with('<')) return Bad("no element");
    MUSTER_ASSIGN(auto root, Element(0));
    return std::move(root.second);
  }

 private:
  static Error Bad(std::string_view why) {
    return Error{Code::kCorrupt, "the answer is not XML: " + std::string(why)};
  }

  Result<std::string_view> Until(std::string_view end) {
    const size_t at = rest_.find(end);
    if (at == std::string_view::npos) return Bad("it ends too early");
    const std::string_view found = rest_.substr(0, at);
    rest_.remove_prefix(at + end.size());
    return found;
  }

  // Skips whitespace, comments and the like between elements.
  Status SkipAside() {
    while (true) {
      while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0])) != 0) {
        rest_.remove_prefix(1);
      }
      if (rest_.starts_with("<?")) {
        MUSTER_TRY(Until("?>"));
      } else if (rest_.starts_with("<!--")) {
        MUSTER_TRY(Until("-->"));
      } else if (rest_.starts_with("<!") && !rest_.starts_with("<![CDATA[")) {
        return Bad("a document type");
      } else {
        return {};
      }
    }
  }

  Result<std::pair<std::string, Json>> Element(int depth) {
    if (depth > kMaxDepth) return Bad("nested too deep");
    rest_.remove_prefix(1);
    MUSTER_ASSIGN(std::string_view tag, Until(">"));
    const bool empty = tag.ends_with('/');
    if (empty) tag.remove_suffix(1);
    std::string name(tag.substr(0, tag.find_first_of(" \t\r\n")));
    if (name.empty()) return Bad("an element without a name");
    if (empty) return std::pair(std::move(name), Json(""));
    std::string text;
    Children children;
    while (!rest_.starts_with("</")) {
      if (rest_.starts_with("<![CDATA[")) {
        rest_.remove_prefix(9);
        MUSTER_ASSIGN(const std::string_view literal, Until("]]>"));
        text += literal;
      } else if (rest_.starts_with("<!--") || rest_.starts_with("<?")) {
        MUSTER_TRY(SkipAside());
      } else if (rest_.starts_with('<')) {
        MUSTER_ASSIGN(auto child, Element(depth + 1));
        children.push_back(std::move(child));
      } else {
        MUSTER_TRY(Text(text));
      }
    }
    rest_.remove_prefix(2);
    MUSTER_ASSIGN(const std::string_view closed, Until(">"));
    if (closed.substr(0, closed.find_first_of(" \t\r\n")) != name) return Bad("tags that cross");
    if (children.empty()) return std::pair(std::move(name), Json(std::move(text)));
    return std::pair(std::move(name), Shape(std::move(children)));
  }

  Status Text(std::string& text) {
    if (rest_.empty()) return Bad("it ends too early");
    if (rest_[0] != '&') {
      const size_t end = std::min(rest_.find_first_of("<&"), rest_.size());
      text += rest_.substr(0, end);
      rest_.remove_prefix(end);
      return {};
    }
    rest_.remove_prefix(1);
    MUSTER_ASSIGN(const std::string_view entity, Until(";"));
    if (!AppendEntity(text, entity)) return Bad("an unknown entity");
    return {};
  }

  std::string_view rest_;
};

}  // namespace

Result<Json> ParseAwsXml(std::string_view xml) { return Parser(xml).Document(); }

}  // namespace muster::task
