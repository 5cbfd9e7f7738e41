#include "pipeline/transform/field_transforms.h"

#include <algorithm>

#include "core/json.h"
#include "core/json_scan.h"
#include "pipeline/json/field_tree.h"
#include "pipeline/json/json_splice.h"

namespace muster::pipeline {
namespace {

std::string Quoted(std::string_view text) {
  std::string json;
  AppendJsonString(json, text);
  return json;
}

// A key with its quotes.
std::string_view WithQuotes(std::string_view raw_key) {
  return {raw_key.data() - 1, raw_key.size() + 2};
}

std::string_view Between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

// Base of these transforms: walks the objects that contain their fields.
class TreeTransform : public Transform {
 public:
  explicit TreeTransform(FieldTree tree) : tree_(std::move(tree)) {}

  Result<bool> Apply(Document& document, Arena& arena, std::vector<Document>& /*more*/) final {
    splice_.Start(document.body);
    const size_t start = SkipJsonSpace(document.body, 0);
    const size_t end = document.body.find_last_of('}') + 1;  // 0: not an object, nothing to visit
    MUSTER_TRY(Visit(tree_, document.body.substr(start, std::max(start, end) - start)));
    document.body = splice_.Result(arena);
    return true;
  }

 protected:
  // Visits the members of one object, which corresponds to `node`.
  virtual Status VisitObject(const FieldTree& node, std::string_view object) = 0;

  // Visits an object, or every object of an array.
  Status Visit(const FieldTree& node, std::string_view value) {
    if (value.starts_with('{')) return VisitObject(node, value);
    if (!value.starts_with('[')) return {};
    JsonElements elements(value);
    while (const auto element = elements.Next()) MUSTER_TRY(Visit(node, *element));
    return {};
  }

  JsonSplice& splice() { return splice_; }

 private:
  const FieldTree tree_;
  JsonSplice splice_;
};

class Rename final : public TreeTransform {
 public:
  Rename(FieldTree tree, std::vector<std::string> names)
      : TreeTransform(std::move(tree)), names_(std::move(names)) {
    for (const std::string& name : names_) quoted_.push_back(Quoted(name));
  }

 protected:
  Status VisitObject(const FieldTree& node, std::string_view object) override {
    const char* taken_name = nullptr;
    bool renamed = false;
    JsonMembers members(object);
    while (const auto member = members.Next()) {
      const FieldTree* const child = node.Find(member->key);
      if (child == nullptr) {
        if (const std::string* name = NewNameIn(node, member->key)) taken_name = name->c_str();
      } else if (child->leaf >= 0) {
        splice().Replace(WithQuotes(member->key), quoted_[static_cast<size_t>(child->leaf)]);
        renamed = true;
      } else {
        MUSTER_TRY(Visit(*child, member->value));
      }
    }
    if (renamed && taken_name != nullptr) {
      return Error{Code::kInvalid, "a field '" + std::string(taken_name) + "' already exists"};
    }
    return {};
  }

 private:
  // The new name of a field at this level that a member already has.
  const std::string* NewNameIn(const FieldTree& node, std::string_view key) const {
    for (const FieldTree& child : node.children) {
      if (child.leaf < 0) continue;
      const std::string& name = names_[static_cast<size_t>(child.leaf)];
      if (JsonKeyIs(key, name)) return &name;
    }
    return nullptr;
  }

  const std::vector<std::string> names_;
  std::vector<std::string> quoted_;
};

// Removes the named members, or all others.
class FieldFilter final : public TreeTransform {
 public:
  FieldFilter(FieldTree tree, bool keeps_named)
      : TreeTransform(std::move(tree)), keeps_(keeps_named) {}

 protected:
  Status VisitObject(const FieldTree& node, std::string_view object) override {
    JsonMembers members(object);
    bool kept_before = false;
    const char* end_before = nullptr;
    std::optional<JsonMember> member = members.Next();
    while (member) {
      const std::optional<JsonMember> next = members.Next();
      const char* const begin = member->key.data() - 1;
      const char* const end = member->value.data() + member->value.size();
      const FieldTree* const child = node.Find(member->key);
      if (IsRemoved(child, member->value)) {
        // Together with the comma before it or, if nothing is kept before it, the one after it.
        if (kept_before) {
          splice().Replace(Between(end_before, end), "");
        } else {
          splice().Replace(Between(begin, next ? next->key.data() - 1 : end), "");
        }
      } else {
        if (child != nullptr && child->leaf < 0) MUSTER_TRY(Visit(*child, member->value));
        kept_before = true;
      }
      end_before = end;
      member = next;
    }
    return {};
  }

 private:
  bool IsRemoved(const FieldTree* child, std::string_view value) const {
    if (!keeps_) return child != nullptr && child->leaf >= 0;
    if (child == nullptr) return true;
    // A scalar has no nested fields.
    return child->leaf < 0 && !value.starts_with('{') && !value.starts_with('[');
  }

  const bool keeps_;
};

class Set final : public TreeTransform {
 public:
  Set(FieldTree tree, std::vector<std::string> values)
      : TreeTransform(std::move(tree)), values_(std::move(values)) {}

 protected:
  Status VisitObject(const FieldTree& node, std::string_view object) override {
    std::vector<bool> seen(node.children.size());
    bool is_empty = true;
    JsonMembers members(object);
    while (const auto member = members.Next()) {
      is_empty = false;
      const FieldTree* const child = node.Find(member->key);
      if (child == nullptr) continue;
      seen[static_cast<size_t>(child - node.children.data())] = true;
      if (child->leaf >= 0) {
        splice().Replace(member->value, values_[static_cast<size_t>(child->leaf)]);
      } else if (member->value.starts_with('{') || member->value.starts_with('[')) {
        MUSTER_TRY(Visit(*child, member->value));
      } else {
        return Error{Code::kInvalid, "the field '" + child->name + "' is not an object"};
      }
    }
    std::string added;
    for (size_t i = 0; i < seen.size(); ++i) {
      if (seen[i]) continue;
      if (!is_empty || !added.empty()) added += ',';
      AppendNew(node.children[i], added);
    }
    if (!added.empty()) splice().Replace(object.substr(object.size() - 1, 0), added);
    return {};
  }

 private:
  void AppendNew(const FieldTree& node, std::string& json) const {
    AppendJsonString(json, node.name);
    json += ':';
    if (node.leaf >= 0) {
      json += values_[static_cast<size_t>(node.leaf)];
      return;
    }
    json += '{';
    for (size_t i = 0; i < node.children.size(); ++i) {
      if (i > 0) json += ',';
      AppendNew(node.children[i], json);
    }
    json += '}';
  }

  const std::vector<std::string> values_;
};

class EditValues final : public TreeTransform {
 public:
  EditValues(FieldTree tree, std::vector<FieldEdit> edits)
      : TreeTransform(std::move(tree)), edits_(std::move(edits)) {}

 protected:
  Status VisitObject(const FieldTree& node, std::string_view object) override {
    JsonMembers members(object);
    while (const auto member = members.Next()) {
      const FieldTree* const child = node.Find(member->key);
      if (child == nullptr) continue;
      if (child->leaf < 0) {
        MUSTER_TRY(Visit(*child, member->value));
      } else {
        MUSTER_TRY(Edit(edits_[static_cast<size_t>(child->leaf)], member->value));
      }
    }
    return {};
  }

 private:
  // Edits each element of an array.
  Status Edit(const FieldEdit& field, std::string_view value) {
    if (value == "null") return {};
    if (value.starts_with('[')) {
      JsonElements elements(value);
      while (const auto element = elements.Next()) MUSTER_TRY(Edit(field, *element));
      return {};
    }
    auto edited = field.edit(value);
    if (!edited) return edited.error().Within("field '" + field.path.text() + "'");
    if (*edited) splice().Replace(value, **edited);
    return {};
  }

  const std::vector<FieldEdit> edits_;
};

template <class Field>
Result<FieldTree> TreeOf(const std::vector<Field>& fields) {
  FieldTree tree;
  for (size_t i = 0; i < fields.size(); ++i) {
    if constexpr (std::is_same_v<Field, JsonPath>) {
      MUSTER_TRY(tree.Add(fields[i], static_cast<int>(i)));
    } else {
      MUSTER_TRY(tree.Add(fields[i].path, static_cast<int>(i)));
    }
  }
  return tree;
}

}  // namespace

Result<std::unique_ptr<Transform>> RenameFields(const std::vector<FieldRename>& renames) {
  MUSTER_ASSIGN(FieldTree tree, TreeOf(renames));
  std::vector<std::string> names;
  for (const FieldRename& one : renames) names.push_back(one.name);
  return std::make_unique<Rename>(std::move(tree), std::move(names));
}

Result<std::unique_ptr<Transform>> DropFields(const std::vector<JsonPath>& paths) {
  MUSTER_ASSIGN(FieldTree tree, TreeOf(paths));
  return std::make_unique<FieldFilter>(std::move(tree), false);
}

Result<std::unique_ptr<Transform>> SelectFields(const std::vector<JsonPath>& paths) {
  MUSTER_ASSIGN(FieldTree tree, TreeOf(paths));
  return std::make_unique<FieldFilter>(std::move(tree), true);
}

Result<std::unique_ptr<Transform>> SetFields(const std::vector<FieldSetting>& values) {
  MUSTER_ASSIGN(FieldTree tree, TreeOf(values));
  std::vector<std::string> texts;
  for (const FieldSetting& one : values) texts.push_back(one.json);
  return std::make_unique<Set>(std::move(tree), std::move(texts));
}

Result<std::unique_ptr<Transform>> EditFields(std::vector<FieldEdit> edits) {
  MUSTER_ASSIGN(FieldTree tree, TreeOf(edits));
  return std::make_unique<EditValues>(std::move(tree), std::move(edits));
}

}  // namespace muster::pipeline
