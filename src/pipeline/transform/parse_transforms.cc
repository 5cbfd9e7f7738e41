#include "core/file.h"
#include "core/regex.h"
#include "core/secrets.h"
#include "core/yaml.h"
#include "muster/migrate.h"
#include "pipeline/json/value_edits.h"
#include "pipeline/transform/edit_plan.h"
#include "pipeline/transform/field_transforms.h"
#include "pipeline/transform/filter_transform.h"
#include "pipeline/transform/javascript_transform.h"
#include "pipeline/transform/transform_metadata.h"
#include "pipeline/transform/transform_yaml.h"

namespace muster::pipeline {
namespace {

constexpr size_t kMaxScriptBytes = size_t{1} << 20;

// Parses a transform file. Every error says where.
class PlanReader {
 public:
  explicit PlanReader(const YamlDocument& document) : document_(document), yaml_(document) {}

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
    MUSTER_TRY(plan_->Make(""));
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
    MUSTER_TRY(yaml_.ExpectMap(value, "rename"));
    std::vector<FieldRename> renames;
    for (const YamlEntry& entry : value.entries) {
      MUSTER_ASSIGN(JsonPath path, yaml_.PathAt(entry.key));
      MUSTER_ASSIGN(std::string name, yaml_.TextAt(entry.value));
      if (name.empty()) return document_.At(entry.value, "the new name is empty");
      plan_->metadata_edits.push_back(
          {.kind = MetadataEdit::Kind::kRename, .path = path, .text = name});
      renames.push_back({std::move(path), std::move(name)});
    }
    return Add(value, [renames] { return RenameFields(renames); });
  }

  Status ReadThin(const YamlNode& value, bool select) {
    MUSTER_ASSIGN(const std::vector<JsonPath> paths, yaml_.PathsAt(value));
    plan_->metadata_edits.push_back(
        {.kind = select ? MetadataEdit::Kind::kSelect : MetadataEdit::Kind::kDrop,
         .path = paths.front(),
         .paths = paths});
    if (select) return Add(value, [paths] { return SelectFields(paths); });
    return Add(value, [paths] { return DropFields(paths); });
  }

  Status ReadSet(const YamlNode& value) {
    MUSTER_TRY(yaml_.ExpectMap(value, "set"));
    std::vector<FieldSetting> values;
    for (const YamlEntry& entry : value.entries) {
      MUSTER_ASSIGN(JsonPath path, yaml_.PathAt(entry.key));
      std::string json = YamlToJson(entry.value);
      if (json != "null") {
        plan_->metadata_edits.push_back(
            {.kind = MetadataEdit::Kind::kType, .path = path, .text = ColumnTypeOfValue(json)});
      }
      values.push_back({std::move(path), std::move(json)});
    }
    return Add(value, [values] { return SetFields(values); });
  }

  Status ReadCast(const YamlNode& value) {
    MUSTER_TRY(yaml_.ExpectMap(value, "cast"));
    std::vector<FieldEdit> edits;
    for (const YamlEntry& entry : value.entries) {
      MUSTER_ASSIGN(JsonPath path, yaml_.PathAt(entry.key));
      MUSTER_ASSIGN(const std::string type, yaml_.TextAt(entry.value));
      const auto edit = CastTo(type);
      if (!edit) {
        return document_.At(entry.value,
                            "unknown type '" + type + "': use integer, number, string or boolean");
      }
      plan_->metadata_edits.push_back(
          {.kind = MetadataEdit::Kind::kType, .path = path, .text = ColumnTypeOf(type)});
      edits.push_back({std::move(path), *edit});
    }
    return Add(value, [edits] { return EditFields(edits); });
  }

  Status ReadRedact(const YamlNode& value) {
    MUSTER_ASSIGN(const std::vector<JsonPath> paths, yaml_.PathsAt(value));
    return AddTextEdits(value, paths, RedactValue());
  }

  // A list of fields, or a map with fields and a key.
  Status ReadHash(const YamlNode& value) {
    std::string key;
    const YamlNode* fields = &value;
    if (value.kind == YamlNode::Kind::kMap) {
      MUSTER_TRY(yaml_.ExpectKeys(value, {"fields", "key"}));
      fields = value.Find("fields");
      if (fields == nullptr) return document_.At(value, "hash needs fields");
      if (const YamlNode* reference = value.Find("key")) {
        MUSTER_ASSIGN(const std::string text, yaml_.TextAt(*reference));
        auto expanded = ExpandSecrets(text);
        if (!expanded) return document_.At(*reference, expanded.error().ToString());
        key = *std::move(expanded);
      }
    }
    MUSTER_ASSIGN(const std::vector<JsonPath> paths, yaml_.PathsAt(*fields));
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
    MUSTER_TRY(yaml_.ExpectMap(node, "filter"));
    MUSTER_TRY(yaml_.ExpectKeys(node, {"field", "exists", "equals", "not_equals", "in", "not_in",
                                       "matches", "above", "at_least", "below", "at_most"}));
    const YamlNode* const field = node.Find("field");
    if (field == nullptr || node.entries.size() < 2) {
      return document_.At(node, "a filter needs a field and a condition");
    }
    FieldCondition condition;
    MUSTER_ASSIGN(condition.path, yaml_.PathAt(*field));
    if (const YamlNode* exists = node.Find("exists")) {
      if (exists->text != "true" && exists->text != "false") {
        return document_.At(*exists, "exists must be true or false");
      }
      condition.exists = exists->text == "true";
    }
    for (const char* name : {"equals", "in"}) {
      MUSTER_TRY(yaml_.AddTexts(node.Find(name), condition.any_of));
    }
    for (const char* name : {"not_equals", "not_in"}) {
      MUSTER_TRY(yaml_.AddTexts(node.Find(name), condition.none_of));
    }
    if (const YamlNode* matches = node.Find("matches")) {
      MUSTER_ASSIGN(condition.matches, yaml_.TextAt(*matches));
    }
    for (const auto& [name, bound] :
         {std::pair("above", &condition.above), std::pair("at_least", &condition.at_least),
          std::pair("below", &condition.below), std::pair("at_most", &condition.at_most)}) {
      const YamlNode* const number = node.Find(name);
      if (number == nullptr) continue;
      if (!IsJsonNumber(number->text)) return document_.At(*number, "a bound must be a number");
      *bound = number->text;
    }
    return condition;
  }

  Status ReadRenameIndex(const YamlNode& value) {
    MUSTER_TRY(yaml_.ExpectMap(value, "rename_index"));
    for (const YamlEntry& entry : value.entries) {
      MUSTER_ASSIGN(const std::string to, yaml_.TextAt(entry.value));
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
      MUSTER_TRY(yaml_.ExpectKeys(value, {"function", "file", "time_ms", "memory_mb"}));
      const YamlNode* const function = value.Find("function");
      const YamlNode* const file = value.Find("file");
      if ((function == nullptr) == (file == nullptr)) {
        return document_.At(value, "javascript needs either a function or a file");
      }
      place = function != nullptr ? function : file;
      MUSTER_ASSIGN(script.source, yaml_.TextAt(*place));
      if (file != nullptr) {
        script.origin = script.source;
        auto source = ReadFile(script.origin, kMaxScriptBytes);
        if (!source) return document_.At(*file, source.error().ToString());
        script.source = *std::move(source);
        plan_->scripts += "\n" + script.source;
      }
      MUSTER_TRY(yaml_.ReadCount(value.Find("time_ms"), script.time_ms));
      MUSTER_TRY(yaml_.ReadCount(value.Find("memory_mb"), script.memory_mb));
    } else {
      MUSTER_TRY(yaml_.TextAt(value));
    }
    return AddScript(*place, script);
  }

  Status AddScript(const YamlNode& node, const JavaScript& script) {
    const auto made = RunJavaScript(script, "");
    if (!made) return document_.At(node, made.error().ToString());
    const auto edits_metadata = EditsMetadata(script);
    if (!edits_metadata) return document_.At(node, edits_metadata.error().ToString());
    if (*made == nullptr && !*edits_metadata) {
      return document_.At(node, "the script has neither the function transform nor metadata");
    }
    if (*edits_metadata) {
      plan_->metadata_edits.push_back(
          {.kind = MetadataEdit::Kind::kScript,
           .script = [script](const Json& metadata, const std::string& collection) {
             return EditMetadataByScript(script, metadata, collection);
           }});
    }
    if (*made != nullptr) {
      plan_->chooses_targets = true;
      plan_->makers.emplace_back(
          [script](const std::string& collection) { return RunJavaScript(script, collection); });
    }
    return {};
  }

  // Builds the transform once, so that its error has a location.
  Status Add(const YamlNode& node, std::function<Result<std::unique_ptr<Transform>>()> make) {
    if (const auto made = make(); !made) return document_.At(node, made.error().ToString());
    plan_->makers.emplace_back([make = std::move(make)](const std::string&) { return make(); });
    return {};
  }

  const YamlDocument& document_;
  const TransformYaml yaml_;
  std::unique_ptr<EditPlan> plan_ = std::make_unique<EditPlan>();
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
