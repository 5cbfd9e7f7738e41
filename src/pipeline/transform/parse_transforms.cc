#include <algorithm>
#include <charconv>
#include <functional>

#include "core/file.h"
#include "core/json.h"
#include "core/number.h"
#include "core/regex.h"
#include "core/secrets.h"
#include "core/yaml.h"
#include "muster/migrate.h"
#include "pipeline/json/value_edits.h"
#include "pipeline/transform/field_transforms.h"
#include "pipeline/transform/filter_transform.h"
#include "pipeline/transform/javascript_transform.h"
#include "pipeline/transform/transform_metadata.h"

namespace muster::pipeline {
namespace {

constexpr size_t kMaxScriptBytes = size_t{1} << 20;

using Maker = std::function<Result<std::unique_ptr<Transform>>()>;

struct IndexRename {
  Regex from;
  std::string to;  // $1 to $9 are the matched groups

  std::optional<std::string> Apply(const std::string& name) const {
    const auto groups = from.Groups(name);
    if (!groups) return std::nullopt;
    std::string result(name.data(), groups->at(0).data() - name.data());
    for (size_t i = 0; i < to.size(); ++i) {
      const bool is_group =
          to[i] == '$' && i + 1 < to.size() && to[i + 1] >= '0' && to[i + 1] <= '9';
      if (!is_group) {
        result += to[i];
        continue;
      }
      const auto group = static_cast<size_t>(to[++i] - '0');
      if (group < groups->size()) result += (*groups)[group];
    }
    const std::string_view whole = groups->at(0);
    return result.append(whole.data() + whole.size(), name.data() + name.size());
  }
};

class Plan final : public TransformPlan {
 public:
  Result<std::vector<std::unique_ptr<Transform>>> Make() const override {
    std::vector<std::unique_ptr<Transform>> all;
    for (const Maker& make : makers) {
      MUSTER_ASSIGN(auto transform, make());
      all.push_back(std::move(transform));
    }
    return all;
  }

  std::string TargetName(const std::string& collection) const override {
    for (const IndexRename& rename : index_renames) {
      if (auto renamed = rename.Apply(collection)) return *std::move(renamed);
    }
    return collection;
  }

  bool EditsDocuments() const override { return !makers.empty(); }

  Collection Target(const Collection& collection) const override {
    return {TargetName(collection.name), EditMetadata(collection.metadata, metadata_edits)};
  }

  std::vector<Maker> makers;
  std::vector<IndexRename> index_renames;  // the first match wins
  std::vector<MetadataEdit> metadata_edits;
};

// Parses a transform file. Every error says where.
class PlanReader {
 public:
  explicit PlanReader(const YamlDocument& document) : document_(document) {}

  Result<std::unique_ptr<TransformPlan>> Read() {
    const YamlNode& root = document_.root;
    if (root.kind == YamlNode::Kind::kNull) return std::move(plan_);
    if (root.kind != YamlNode::Kind::kSequence) {
      return document_.At(root, "transforms must be a list");
    }
    for (const YamlNode& item : root.items) {
      if (item.kind != YamlNode::Kind::kMap || item.entries.size() != 1) {
        return document_.At(item, "a transform must be a single name with its settings");
      }
      MUSTER_TRY(ReadOne(item.entries[0].key, item.entries[0].value));
    }
    // Report errors now rather than in the middle of a migration.
    MUSTER_TRY(plan_->Make());
    return std::move(plan_);
  }

 private:
  Status ReadOne(const YamlNode& name, const YamlNode& value) {
    if (name.text == "rename") return ReadRename(value);
    if (name.text == "drop") return ReadThin(value, false);
    if (name.text == "select") return ReadThin(value, true);
    if (name.text == "set") return ReadSet(value);
    if (name.text == "cast") return ReadCast(value);
    if (name.text == "redact") return ReadRedact(value);
    if (name.text == "hash") return ReadHash(value);
    if (name.text == "filter") return ReadFilter(value);
    if (name.text == "rename_index") return ReadRenameIndex(value);
    if (name.text == "javascript") return ReadJavaScript(value);
    return document_.At(name, "unknown transform '" + name.text +
                                  "': use rename, drop, select, set, cast, filter, redact, "
                                  "hash, rename_index and javascript");
  }

  Status ReadRename(const YamlNode& value) {
    MUSTER_TRY(ExpectMap(value, "rename"));
    std::vector<FieldRename> renames;
    for (const YamlEntry& entry : value.entries) {
      MUSTER_ASSIGN(JsonPath path, PathAt(entry.key));
      MUSTER_ASSIGN(std::string name, TextAt(entry.value));
      if (name.empty()) return document_.At(entry.value, "the new name is empty");
      plan_->metadata_edits.push_back(
          {.kind = MetadataEdit::Kind::kRename, .path = path, .text = name});
      renames.push_back({std::move(path), std::move(name)});
    }
    return Add(value, [renames] { return RenameFields(renames); });
  }

  Status ReadThin(const YamlNode& value, bool select) {
    MUSTER_ASSIGN(const std::vector<JsonPath> paths, PathsAt(value));
    plan_->metadata_edits.push_back(
        {.kind = select ? MetadataEdit::Kind::kSelect : MetadataEdit::Kind::kDrop,
         .path = paths.front(),
         .paths = paths});
    if (select) return Add(value, [paths] { return SelectFields(paths); });
    return Add(value, [paths] { return DropFields(paths); });
  }

  Status ReadSet(const YamlNode& value) {
    MUSTER_TRY(ExpectMap(value, "set"));
    std::vector<FieldSetting> values;
    for (const YamlEntry& entry : value.entries) {
      MUSTER_ASSIGN(JsonPath path, PathAt(entry.key));
      std::string json = ToJson(entry.value);
      if (json != "null") {
        plan_->metadata_edits.push_back(
            {.kind = MetadataEdit::Kind::kType, .path = path, .text = ColumnTypeOfValue(json)});
      }
      values.push_back({std::move(path), std::move(json)});
    }
    return Add(value, [values] { return SetFields(values); });
  }

  Status ReadCast(const YamlNode& value) {
    MUSTER_TRY(ExpectMap(value, "cast"));
    std::vector<FieldEdit> edits;
    for (const YamlEntry& entry : value.entries) {
      MUSTER_ASSIGN(JsonPath path, PathAt(entry.key));
      MUSTER_ASSIGN(const std::string type, TextAt(entry.value));
      const auto edit = CastTo(type);
      if (!edit) {
        return document_.At(
            entry.value, "there is no type '" + type + "': use integer, number, string or boolean");
      }
      plan_->metadata_edits.push_back(
          {.kind = MetadataEdit::Kind::kType, .path = path, .text = ColumnTypeOf(type)});
      edits.push_back({std::move(path), *edit});
    }
    return Add(value, [edits] { return EditFields(edits); });
  }

  Status ReadRedact(const YamlNode& value) {
    MUSTER_ASSIGN(const std::vector<JsonPath> paths, PathsAt(value));
    return AddTextEdits(value, paths, RedactValue());
  }

  // A list of fields, or a map with fields and a key.
  Status ReadHash(const YamlNode& value) {
    std::string key;
    const YamlNode* fields = &value;
    if (value.kind == YamlNode::Kind::kMap) {
      MUSTER_TRY(ExpectKeys(value, {"fields", "key"}));
      fields = value.Find("fields");
      if (fields == nullptr) return document_.At(value, "hash needs fields");
      if (const YamlNode* reference = value.Find("key")) {
        MUSTER_ASSIGN(const std::string text, TextAt(*reference));
        auto expanded = ExpandSecrets(text);
        if (!expanded) return document_.At(*reference, expanded.error().ToString());
        key = *std::move(expanded);
      }
    }
    MUSTER_ASSIGN(const std::vector<JsonPath> paths, PathsAt(*fields));
    return AddTextEdits(value, paths, HashValue(key));
  }

  Status AddTextEdits(const YamlNode& node, const std::vector<JsonPath>& paths,
                      const ValueEdit& edit) {
    std::vector<FieldEdit> edits;
    for (const JsonPath& path : paths) {
      plan_->metadata_edits.push_back(
          {.kind = MetadataEdit::Kind::kType, .path = path, .text = "text"});
      edits.push_back({path, edit});
    }
    return Add(node, [edits] { return EditFields(edits); });
  }

  // One condition, or a list of them.
  Status ReadFilter(const YamlNode& value) {
    std::vector<FieldCondition> conditions;
    if (value.kind == YamlNode::Kind::kSequence) {
      for (const YamlNode& item : value.items) {
        MUSTER_ASSIGN(FieldCondition condition, ConditionAt(item));
        conditions.push_back(std::move(condition));
      }
    } else {
      MUSTER_ASSIGN(FieldCondition condition, ConditionAt(value));
      conditions.push_back(std::move(condition));
    }
    return Add(value, [conditions] { return FilterDocuments(conditions); });
  }

  Result<FieldCondition> ConditionAt(const YamlNode& node) {
    MUSTER_TRY(ExpectMap(node, "filter"));
    MUSTER_TRY(ExpectKeys(node, {"field", "exists", "equals", "not_equals", "in", "not_in",
                                 "matches", "above", "at_least", "below", "at_most"}));
    const YamlNode* const field = node.Find("field");
    if (field == nullptr || node.entries.size() < 2) {
      return document_.At(node, "a filter needs a field and a condition");
    }
    FieldCondition condition;
    MUSTER_ASSIGN(condition.path, PathAt(*field));
    if (const YamlNode* exists = node.Find("exists")) {
      if (exists->text != "true" && exists->text != "false") {
        return document_.At(*exists, "exists must be true or false");
      }
      condition.exists = exists->text == "true";
    }
    for (const char* name : {"equals", "in"}) {
      MUSTER_TRY(AddTexts(node.Find(name), condition.any_of));
    }
    for (const char* name : {"not_equals", "not_in"}) {
      MUSTER_TRY(AddTexts(node.Find(name), condition.none_of));
    }
    if (const YamlNode* matches = node.Find("matches")) {
      MUSTER_ASSIGN(condition.matches, TextAt(*matches));
    }
    for (const auto& [name, bound] :
         {std::pair("above", &condition.above), std::pair("at_least", &condition.at_least),
          std::pair("below", &condition.below), std::pair("at_most", &condition.at_most)}) {
      const YamlNode* const number = node.Find(name);
      if (number == nullptr) continue;
      if (!IsJsonNumber(number->text)) return document_.At(*number, "a bound must be a number");
      *bound = ParseNumber<double>(number->text);
      if (!*bound) return document_.At(*number, "the bound is too large for a number");
    }
    return condition;
  }

  Status ReadRenameIndex(const YamlNode& value) {
    MUSTER_TRY(ExpectMap(value, "rename_index"));
    for (const YamlEntry& entry : value.entries) {
      MUSTER_ASSIGN(const std::string to, TextAt(entry.value));
      if (to.empty()) return document_.At(entry.value, "the new name is empty");
      std::string expression = entry.key.text;
      if (expression.size() >= 2 && expression.front() == '/' && expression.back() == '/') {
        expression = expression.substr(1, expression.size() - 2);
      } else {
        expression = "^" + Regex::Escape(expression) + "$";
      }
      auto regex = Regex::Compile(expression);
      if (!regex) return document_.At(entry.key, regex.error().message);
      plan_->index_renames.push_back({*std::move(regex), to});
    }
    return {};
  }

  // A function, or a map with the function or its file, and limits.
  Status ReadJavaScript(const YamlNode& value) {
    JavaScript script{.source = value.text, .origin = document_.origin};
    const YamlNode* place = &value;
    if (value.kind == YamlNode::Kind::kMap) {
      MUSTER_TRY(ExpectKeys(value, {"function", "file", "time_ms", "memory_mb"}));
      const YamlNode* const function = value.Find("function");
      const YamlNode* const file = value.Find("file");
      if ((function == nullptr) == (file == nullptr)) {
        return document_.At(value, "javascript needs either a function or a file");
      }
      place = function != nullptr ? function : file;
      MUSTER_ASSIGN(script.source, TextAt(*place));
      if (file != nullptr) {
        script.origin = script.source;
        auto source = ReadFile(script.origin, kMaxScriptBytes);
        if (!source) return document_.At(*file, source.error().ToString());
        script.source = *std::move(source);
      }
      MUSTER_TRY(ReadCount(value.Find("time_ms"), script.time_ms));
      MUSTER_TRY(ReadCount(value.Find("memory_mb"), script.memory_mb));
    } else {
      MUSTER_TRY(TextAt(value));
    }
    return Add(*place, [script] { return RunJavaScript(script); });
  }

  Status ReadCount(const YamlNode* node, int& count) const {
    if (node == nullptr) return {};
    count = ParseNumber<int>(node->text).value_or(0);
    if (count < 1) return document_.At(*node, "expected a number of at least 1");
    return {};
  }

  // Builds the transform once, so that its error has a location.
  Status Add(const YamlNode& node, Maker make) {
    if (const auto made = make(); !made) return document_.At(node, made.error().ToString());
    plan_->makers.push_back(std::move(make));
    return {};
  }

  Status ExpectMap(const YamlNode& node, std::string_view name) const {
    if (node.kind == YamlNode::Kind::kMap && !node.entries.empty()) return {};
    return document_.At(node, std::string(name) + " takes a map");
  }

  Status ExpectKeys(const YamlNode& node, std::initializer_list<std::string_view> known) const {
    for (const YamlEntry& entry : node.entries) {
      if (std::find(known.begin(), known.end(), entry.key.text) == known.end()) {
        return document_.At(entry.key, "unknown key '" + entry.key.text + "'");
      }
    }
    return {};
  }

  Result<std::string> TextAt(const YamlNode& node) const {
    if (node.kind != YamlNode::Kind::kScalar) return document_.At(node, "a text is expected");
    return node.text;
  }

  Status AddTexts(const YamlNode* node, std::vector<std::string>& texts) const {
    if (node == nullptr) return {};
    if (node->kind != YamlNode::Kind::kSequence) {
      texts.push_back(node->kind == YamlNode::Kind::kNull ? "null" : node->text);
      return {};
    }
    for (const YamlNode& item : node->items) MUSTER_TRY(AddTexts(&item, texts));
    return {};
  }

  Result<JsonPath> PathAt(const YamlNode& node) const {
    MUSTER_ASSIGN(const std::string text, TextAt(node));
    auto path = JsonPath::Parse(text);
    if (!path) return document_.At(node, path.error().ToString());
    return *std::move(path);
  }

  Result<std::vector<JsonPath>> PathsAt(const YamlNode& node) const {
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

  // By YAML's rules: quoted scalars are strings, and so is anything that is nothing else.
  static std::string ToJson(const YamlNode& node) {
    std::string json;
    switch (node.kind) {
      case YamlNode::Kind::kNull:
        return "null";
      case YamlNode::Kind::kSequence:
        json = "[";
        for (const YamlNode& item : node.items) {
          json += (json.size() > 1 ? "," : "") + ToJson(item);
        }
        return json + "]";
      case YamlNode::Kind::kMap:
        json = "{";
        for (const YamlEntry& entry : node.entries) {
          if (json.size() > 1) json += ',';
          AppendJsonString(json, entry.key.text);
          json += ':' + ToJson(entry.value);
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

  const YamlDocument& document_;
  std::unique_ptr<Plan> plan_ = std::make_unique<Plan>();
};

}  // namespace

Result<std::unique_ptr<TransformPlan>> ParseTransforms(const std::string& text,
                                                       const std::string& file) {
  MUSTER_ASSIGN(const YamlDocument document, ParseYaml(text, file));
  // A truncated file must not let through what it was meant to hide.
  const YamlNode& root = document.root;
  const bool has_none = root.kind == YamlNode::Kind::kNull ||
                        (root.kind == YamlNode::Kind::kSequence && root.items.empty());
  if (!file.empty() && has_none) {
    return Error{Code::kInvalid, file + " has no transforms", "omit it if nothing should change"};
  }
  return PlanReader(document).Read();
}

}  // namespace muster::pipeline
