#include "states/asl/definition_reader.h"

namespace muster::states {

size_t CountChars(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) TakeCodePoint(text);
  return count;
}

const Node* Fields::Find(std::string_view name) {
  known_.emplace(name);
  return node_.Find(name);
}

const Node* Fields::String(std::string_view name) {
  const Node* node = Find(name);
  if (node == nullptr || node->is_string()) return node;
  source_.Add(node->offset, "\"" + std::string(name) + "\" must be a string");
  return nullptr;
}

const Node* Fields::Object(std::string_view name) {
  const Node* node = Find(name);
  if (node == nullptr || node->is_object()) return node;
  source_.Add(node->offset, "\"" + std::string(name) + "\" must be an object");
  return nullptr;
}

const Node* Fields::Array(std::string_view name) {
  const Node* node = Find(name);
  if (node == nullptr || node->is_array()) return node;
  source_.Add(node->offset, "\"" + std::string(name) + "\" must be an array");
  return nullptr;
}

void Fields::RejectOthers(std::string_view what, std::string_view hint) {
  for (const Node::Member& member : node_.members) {
    if (known_.contains(member.key)) continue;
    source_.Add(member.key_offset,
                std::string(what) + " has no field \"" + member.key + "\"" + std::string(hint));
  }
}

PathField DefinitionReader::ReadPathField(Fields& fields, std::string_view name) {
  PathField field;
  const Node* node = fields.Find(name);
  if (node == nullptr) return field;
  if (node->is_null()) {
    field.null = true;
  } else if (!node->is_string()) {
    source_.Add(node->offset, "\"" + std::string(name) + "\" must be a path or null");
  } else if (auto query = Query::ParsePath(node->text()); !query) {
    source_.Add(node->offset, query.error().message);
  } else if (!(query->kind == Query::Kind::kInput && query->path.IsRoot())) {
    field.query = *std::move(query);
  }
  return field;
}

ResultPathField DefinitionReader::ReadResultPath(Fields& fields) {
  ResultPathField field;
  const Node* node = fields.Find("ResultPath");
  if (node == nullptr) return field;
  if (node->is_null()) {
    field.null = true;
    return field;
  }
  if (!node->is_string()) {
    source_.Add(node->offset, "\"ResultPath\" must be a path or null");
    return field;
  }
  auto path = JsonPath::Parse(node->text());
  if (!path) {
    source_.Add(node->offset, path.error().message);
  } else if (!path->IsReference()) {
    source_.Add(node->offset,
                "\"ResultPath\" must be a reference path, which names one node: " + node->text());
  } else if (!path->IsRoot()) {
    field.path = *std::move(path);
  }
  return field;
}

std::optional<Template> DefinitionReader::ReadTemplate(const State& state, Fields& fields,
                                                       const std::string& name) {
  const Node* node = fields.Find(name);
  if (node == nullptr) return {};
  if (state.jsonata) return Template::ReadJsonata(*node, name, source_, jsonata_);
  return Template::ReadJsonPath(*node, source_);
}

std::optional<Template> DefinitionReader::ReadAssign(const State& state, Fields& fields) {
  const Node* node = fields.Object("Assign");
  if (node == nullptr) return {};
  for (const Node::Member& member : node->members) {
    std::string_view name = member.key;
    if (!state.jsonata && name.ends_with(".$")) name.remove_suffix(2);
    if (name.empty() || name.size() > kMaxNameChars) {
      source_.Add(member.key_offset, "the name of a variable has 1 to 80 characters");
    } else if (name == "states") {
      source_.Add(member.key_offset, "\"states\" is reserved and cannot be assigned");
    }
  }
  if (state.jsonata) return Template::ReadJsonata(*node, "Assign", source_, jsonata_);
  return Template::ReadJsonPath(*node, source_);
}

void DefinitionReader::ReadInputAndOutput(State& state, Fields& fields, bool has_input) {
  if (state.jsonata) {
    state.output = ReadTemplate(state, fields, "Output");
    return;
  }
  if (has_input) state.input_path = ReadPathField(fields, "InputPath");
  state.output_path = ReadPathField(fields, "OutputPath");
}

void DefinitionReader::ReadResult(State& state, Fields& fields) {
  state.parameters = ReadTemplate(state, fields, state.jsonata ? "Arguments" : "Parameters");
  if (state.jsonata) return;
  state.result_selector = ReadTemplate(state, fields, "ResultSelector");
  state.result_path = ReadResultPath(fields);
}

Computed DefinitionReader::ReadComputed(const State& state, Fields& fields, const std::string& name,
                                        Json::Type type, double least, double most) {
  Computed computed;
  computed.field = name;
  const Node* literal = fields.Find(name);
  const std::string expected =
      type == Json::Type::kString ? "a string"
                                  : "a number from " + std::to_string(static_cast<int64_t>(least)) +
                                        " to " + std::to_string(static_cast<int64_t>(most));
  if (literal != nullptr) {
    if (state.jsonata && literal->is_string() &&
        (type != Json::Type::kString || literal->text().starts_with("{%"))) {
      computed.query = ReadJsonataText(*literal, source_, jsonata_);
    } else if (const bool wrong_type =
                   type == Json::Type::kString ? !literal->is_string() : !literal->is_number();
               wrong_type ||
               (literal->is_number() &&
                (literal->scalar.get<double>() < least || literal->scalar.get<double>() > most ||
                 (type == Json::Type::kInteger && !literal->scalar.is_number_integer())))) {
      source_.Add(literal->offset, "\"" + name + "\" must be " + expected);
    } else {
      computed.literal = literal->scalar;
    }
  }
  if (state.jsonata) return computed;
  const Node* path = fields.String(name + "Path");
  if (path == nullptr) return computed;
  if (literal != nullptr) {
    source_.Add(path->offset, "a state has \"" + name + "\" or \"" + name + "Path\", not both");
  }
  auto query = Query::ParsePath(path->text());
  if (!query) {
    source_.Add(path->offset, query.error().message);
  } else {
    computed.field = name + "Path";
    computed.query = *std::move(query);
  }
  return computed;
}

}  // namespace muster::states
