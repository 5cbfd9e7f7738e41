#include "pipeline/transform/javascript_transform.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/json.h"
#include "core/json_scan.h"
#include "core/utf8.h"
#include "pipeline/transform/transform_metadata.h"
#include "script/js.h"

namespace muster::pipeline {
namespace {

constexpr char kTransform[] = "transform";
constexpr char kMetadata[] = "metadata";
constexpr size_t kMostShown = 40;  // bytes of a wrong value in a message

Result<std::unique_ptr<script::JsFunction>> Compile(const JavaScript& script, const char* name) {
  script::JsLimits limits;
  limits.time = std::chrono::milliseconds(script.time_ms);
  limits.memory_bytes = static_cast<size_t>(script.memory_mb) << 20;
  return script::JsFunction::CompileMember(
      script.source, script.origin, {.name = name, .known = {kTransform, kMetadata}}, limits);
}

std::string Shown(std::string_view json) { return Shortened(json, kMostShown); }

bool IsInteger(std::string_view json) {
  if (json.starts_with('-')) json.remove_prefix(1);
  return !json.empty() && std::all_of(json.begin(), json.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

class JavaScriptTransform final : public Transform {
 public:
  JavaScriptTransform(std::unique_ptr<script::JsFunction> function, const std::string& collection)
      : function_(std::move(function)) {
    collection_ = ",\"collection\":";
    AppendJsonString(collection_, collection);
  }

  Result<bool> Apply(Document& document, Arena& arena, std::vector<Document>& more) override {
    std::string meta = "{\"id\":";
    AppendJsonString(meta, document.id);
    meta += ",\"routing\":";
    AppendJsonString(meta, document.routing);
    meta += collection_;
    meta += document.deleted ? ",\"deleted\":true}" : ",\"deleted\":false}";
    MUSTER_ASSIGN(const auto result, function_->Call({document.body, meta}));
    if (!result || *result == "null") return false;
    if (result->starts_with('[')) return TakeAll(arena.Copy(*result), document, arena, more);
    if (!result->starts_with('{')) {
      return Error{Code::kInvalid,
                   "the function must return an object, but returned " + Shown(*result)};
    }
    document.body = arena.Copy(*result);
    return true;
  }

 private:
  // `list` is in the arena.
  static Result<bool> TakeAll(std::string_view list, Document& document, Arena& arena,
                              std::vector<Document>& more) {
    const Document original = document;
    JsonElements elements(list);
    size_t number = 0;
    for (; const auto element = elements.Next(); ++number) {
      auto one = DocumentOf(*element, original, arena);
      if (!one) return one.error().Within("element " + std::to_string(number) + " of the array");
      if (number == 0) {
        document = *one;
      } else {
        more.push_back(*one);
      }
    }
    return number > 0;
  }

  static Result<Document> DocumentOf(std::string_view element, const Document& original,
                                     Arena& arena) {
    if (!element.starts_with('{')) {
      return Error{Code::kInvalid,
                   "it is not an object {id, routing, index, source}, but " + Shown(element)};
    }
    Document document = original;
    document.id = document.body = {};
    JsonMembers members(element);
    while (const auto member = members.Next()) {
      if (JsonKeyIs(member->key, "id")) {
        MUSTER_ASSIGN(document.id, NameIn(*member, arena));
      } else if (JsonKeyIs(member->key, "routing")) {
        MUSTER_ASSIGN(document.routing, NameIn(*member, arena));
      } else if (JsonKeyIs(member->key, "index")) {
        MUSTER_ASSIGN(document.target, IndexIn(*member, arena));
      } else if (JsonKeyIs(member->key, "source") && member->value.starts_with('{')) {
        document.body = member->value;
      } else {
        return WrongMember(*member);
      }
    }
    if (document.id.empty()) return Error{Code::kInvalid, "it has no id"};
    if (document.body.empty()) return Error{Code::kInvalid, "it has no source"};
    return document;
  }

  // Null: none.
  static Result<std::string_view> NameIn(const JsonMember& member, Arena& arena) {
    if (member.value == "null") return std::string_view();
    if (!member.value.starts_with('"') && !IsInteger(member.value)) {
      return Error{Code::kInvalid, "its " + std::string(member.key) +
                                       " is not a string or an integer, but " +
                                       Shown(member.value)};
    }
    return arena.Copy(JsonScalarText(member.value).value_or(""));
  }

  // Null: the collection's.
  static Result<std::string_view> IndexIn(const JsonMember& member, Arena& arena) {
    if (member.value == "null") return std::string_view();
    const std::string index =
        member.value.starts_with('"') ? JsonScalarText(member.value).value_or("") : "";
    if (index.empty()) {
      return Error{Code::kInvalid, "its index is not a name, but " + Shown(member.value)};
    }
    return arena.Copy(index);
  }

  static Error WrongMember(const JsonMember& member) {
    if (JsonKeyIs(member.key, "source")) {
      return Error{Code::kInvalid, "its source is not an object, but " + Shown(member.value)};
    }
    return Error{Code::kInvalid, "it has '" + Shown(member.key) +
                                     "': only id, routing, index and source are allowed"};
  }

  const std::unique_ptr<script::JsFunction> function_;
  std::string collection_;  // as a member of the second argument
};

}  // namespace

Result<std::unique_ptr<Transform>> RunJavaScript(const JavaScript& script,
                                                 const std::string& collection) {
  MUSTER_ASSIGN(auto function, Compile(script, kTransform));
  if (function == nullptr) return std::unique_ptr<Transform>();
  return std::make_unique<JavaScriptTransform>(std::move(function), collection);
}

Result<bool> EditsMetadata(const JavaScript& script) {
  MUSTER_ASSIGN(const auto function, Compile(script, kMetadata));
  return function != nullptr;
}

Result<Json> EditMetadataByScript(const JavaScript& script, const Json& metadata,
                                  const std::string& collection) {
  MUSTER_ASSIGN(const auto function, Compile(script, kMetadata));
  if (function == nullptr) return metadata;
  const std::string about = ToJsonText(Json{{"collection", collection}});
  MUSTER_ASSIGN(const auto result, function->Call({ToJsonText(metadata), about}));
  if (!result || !result->starts_with('{')) {
    return Error{Code::kInvalid, script.origin + ": metadata must return an object, but returned " +
                                     (result ? Shown(*result) : "nothing")};
  }
  MUSTER_ASSIGN(Json edited, ParseJson(*result, script.origin + ": the result of metadata"));
  if (Status checked = CheckMetadata(edited); !checked) {
    return checked.error().Within(script.origin + ": the result of metadata");
  }
  return edited;
}

}  // namespace muster::pipeline
