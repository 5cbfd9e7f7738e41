#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/yaml.h"
#include "muster/result.h"
#include "pipeline/json/json_path.h"

namespace muster::pipeline {

// Reads the settings in a transform file. Every error says where. `document` must outlive it.
class TransformYaml {
 public:
  explicit TransformYaml(const YamlDocument& document) : document_(document) {}

  Status ExpectMap(const YamlNode& node, std::string_view name) const;
  Status ExpectKeys(const YamlNode& node, std::initializer_list<std::string_view> known) const;

  Result<std::string> TextAt(const YamlNode& node) const;
  Result<JsonPath> PathAt(const YamlNode& node) const;
  Result<std::vector<JsonPath>> PathsAt(const YamlNode& node) const;

  // A scalar, or a list of them; nothing if there is no node.
  Status AddTexts(const YamlNode* node, std::vector<std::string>& texts) const;

  // A number of at least 1; leaves `count` alone if there is no node.
  Status ReadCount(const YamlNode* node, int& count) const;

 private:
  const YamlDocument& document_;
};

}  // namespace muster::pipeline
