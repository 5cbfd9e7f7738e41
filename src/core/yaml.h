#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/utf8.h"
#include "muster/result.h"

namespace muster {

struct YamlEntry;

// A YAML node with its position. Scalars keep their text: what `yes` or `007` means is up to the
// field's reader.
struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  TextPosition position;
  std::string text = {};             // of a scalar
  bool quoted = false;               // of a scalar: definitely a string
  std::vector<YamlNode> items = {};  // of a sequence
  std::vector<YamlEntry> entries;    // of a map, in the order written

  // The value of a key; null if missing, or if this is not a map.
  const YamlNode* Find(std::string_view key) const;
};

struct YamlEntry {
  YamlNode key;  // always a scalar
  YamlNode value;
};

struct YamlDocument {
  std::string origin;
  YamlNode root;

  // A kInvalid error about a node: "origin:line:column: reason".
  Error At(const YamlNode& node, std::string_view reason) const;
};

struct YamlLimits {
  size_t bytes = 4 * 1024 * 1024;
  size_t depth = 64;
  size_t nodes = 100'000;  // after expanding aliases
};

// Parses one YAML document (JSON is YAML too). Aliases are expanded within the limits. Beyond what
// YAML forbids, rejects duplicate keys, keys that are not scalars, tags other than !!str, several
// documents and invalid UTF-8.
//
// kInvalid says "origin:line:column: reason".
Result<YamlDocument> ParseYaml(std::string_view text, std::string_view origin,
                               const YamlLimits& limits = {});

// The same for a file. An unreadable file is kInvalid too.
Result<YamlDocument> ReadYamlFile(const std::string& path, const YamlLimits& limits = {});

// A node as JSON text, by YAML's rules: quoted scalars are strings, and so is any plain scalar of
// no other type.
std::string YamlToJson(const YamlNode& node);

}  // namespace muster
