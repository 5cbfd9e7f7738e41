#include "pipeline/transform/transform_yaml.h"

#include <algorithm>
#include <utility>

#include "core/number.h"

namespace muster::pipeline {

Status TransformYaml::ExpectMap(const YamlNode& node, std::string_view name) const {
  if (node.kind == YamlNode::Kind::kMap && !node.entries.empty()) return {};
  return document_.At(node, std::string(name) + " takes a map");
}

Status TransformYaml::ExpectKeys(const YamlNode& node,
                                 std::initializer_list<std::string_view> known) const {
  for (const YamlEntry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key.text) == known.end()) {
      return document_.At(entry.key, "unknown key '" + entry.key.text + "'");
    }
  }
  return {};
}

Result<std::string> TransformYaml::TextAt(const YamlNode& node) const {
  if (node.kind != YamlNode::Kind::kScalar) return document_.At(node, "expected a string");
  return node.text;
}

Status TransformYaml::AddTexts(const YamlNode* node, std::vector<std::string>& texts) const {
  if (node == nullptr) return {};
  if (node->kind != YamlNode::Kind::kSequence) {
    texts.push_back(node->kind == YamlNode::Kind::kNull ? "null" : node->text);
    return {};
  }
  for (const YamlNode& item : node->items) MUSTER_TRY(AddTexts(&item, texts));
  return {};
}

Result<JsonPath> TransformYaml::PathAt(const YamlNode& node) const {
  MUSTER_ASSIGN(const std::string text, TextAt(node));
  auto path = JsonPath::Parse(text);
  if (!path) return document_.At(node, path.error().ToString());
  return *std::move(path);
}

Result<std::vector<JsonPath>> TransformYaml::PathsAt(const YamlNode& node) const {
  if (node.kind != YamlNode::Kind::kSequence || node.items.empty()) {
    return document_.At(node, "expected a list of fields");
  }
  std::vector<JsonPath> paths;
  for (const YamlNode& item : node.items) {
    MUSTER_ASSIGN(JsonPath path, PathAt(item));
    paths.push_back(std::move(path));
  }
  return paths;
}

Status TransformYaml::ReadCount(const YamlNode* node, int& count) const {
  if (node == nullptr) return {};
  count = ParseNumber<int>(node->text).value_or(0);
  if (count < 1) return document_.At(*node, "expected a number of at least 1");
  return {};
}

}  // namespace muster::pipeline
