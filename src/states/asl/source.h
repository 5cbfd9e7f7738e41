#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/utf8.h"
#include "muster/result.h"

namespace muster::states {

// A problem in a definition, with its position.
struct Problem {
  TextPosition position;
  std::string message;
  // The machine cannot run. Other problems are only rejected by AWS's tools.
  bool fatal = true;
};

// A JSON value with its position in the text.
struct Node {
  struct Member;

  Json scalar;  // of what is neither an object nor an array
  enum class Kind { kScalar, kObject, kArray } kind = Kind::kScalar;
  size_t offset = 0;
  std::vector<Member> members;
  std::vector<Node> items;

  bool is_object() const { return kind == Kind::kObject; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_string() const { return kind == Kind::kScalar && scalar.is_string(); }
  bool is_number() const { return kind == Kind::kScalar && scalar.is_number(); }
  bool is_null() const { return kind == Kind::kScalar && scalar.is_null(); }
  const std::string& text() const { return scalar.get_ref<const std::string&>(); }

  const Node* Find(std::string_view key) const;
  Json ToJson() const;
};

struct Node::Member {
  std::string key;
  size_t key_offset = 0;
  Node value;
};

// Parses JSON with positions. A duplicate key is a problem, but parsing continues. Invalid JSON
// ends it: the last problem has the reason, and there is no root.
struct Source {
  std::string_view text;
  std::unique_ptr<Node> root;
  std::vector<Problem> problems;

  static Source Read(std::string_view text);

  void Add(size_t offset, std::string message, bool fatal = true);
};

}  // namespace muster::states
