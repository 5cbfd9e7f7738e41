#include "states/definition_reader.h"

#include <algorithm>
#include <deque>

#include "states/timestamp.h"

namespace muster::states {
namespace {

constexpr size_t kMaxNameChars = 80;
constexpr int kMaxMachineDepth = 100;
constexpr double kMaxSeconds = 99'999'999;

const std::map<std::string, StateType, std::less<>> kTypes = {
    {"Task", StateType::kTask},         {"Pass", StateType::kPass},
    {"Choice", StateType::kChoice},     {"Wait", StateType::kWait},
    {"Succeed", StateType::kSucceed},   {"Fail", StateType::kFail},
    {"Parallel", StateType::kParallel}, {"Map", StateType::kMap}};

size_t CountChars(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) TakeCodePoint(text);
  return count;
}

}  // namespace

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

Definition DefinitionReader::Read(const Node& root) {
  if (!root.is_object()) {
    source_.Add(root.offset, "a definition is a JSON object with \"StartAt\" and \"States\"");
    return {};
  }
  Fields fields(root, source_);
  if (const Node* comment = fields.String("Comment")) definition_.comment = comment->text();
  if (const Node* version = fields.String("Version");
      version != nullptr && version->text() != "1.0") {
    source_.Add(version->offset, "the only version is \"1.0\"");
  }
  if (const Node* timeout = fields.Find("TimeoutSeconds")) {
    if (!timeout->is_number() || timeout->scalar.get<double>() < 1 ||
        timeout->scalar.get<double>() > kMaxSeconds) {
      source_.Add(timeout->offset,
                  "\"TimeoutSeconds\" must be a number of seconds from 1 to 99999999");
    } else {
      definition_.timeout_s = timeout->scalar.get<int64_t>();
    }
  }
  if (const Node* language = fields.String("QueryLanguage")) {
    jsonata_machine_ = language->text() == "JSONata";
    if (!jsonata_machine_ && language->text() != "JSONPath") {
      source_.Add(language->offset, "\"QueryLanguage\" is \"JSONPath\" or \"JSONata\"");
    }
  }
  ReadMachine(root, true, jsonata_machine_, fields);
  for (std::string_view hint : {"Execution", "context", "\"$$\""}) {
    definition_.uses_context =
        definition_.uses_context || source_.text.find(hint) != std::string_view::npos;
  }
  fields.RejectOthers("a state machine", "");
  return std::move(definition_);
}

int DefinitionReader::ReadMachine(const Node& node, bool outermost, bool jsonata, Fields& fields) {
  const int index = static_cast<int>(definition_.machines.size());
  definition_.machines.emplace_back();
  const std::string where = outermost ? "the state machine" : "this branch";
  if (!outermost) fields.String("Comment");
  const Node* start = fields.String("StartAt");
  const Node* states = fields.Object("States");
  if (!fields.Has("StartAt")) source_.Add(node.offset, where + " has no \"StartAt\"");
  if (!fields.Has("States")) source_.Add(node.offset, where + " has no \"States\"");
  if (states == nullptr) return index;
  if (++depth_ > kMaxMachineDepth) {
    source_.Add(node.offset, "Parallel and Map states are nested deeper than 100 levels");
    --depth_;
    return index;
  }
  Machine machine;
  if (start != nullptr) machine.start_at = start->text();
  for (const Node::Member& member : states->members) {
    if (CountChars(member.key) > kMaxNameChars) {
      source_.Add(member.key_offset, "the name of a state has at most 80 characters");
    }
    if (!names_.insert(member.key).second) {
      source_.Add(member.key_offset, "there is another state named \"" + member.key +
                                         "\": names must differ in the whole definition");
    }
    if (!member.value.is_object()) {
      source_.Add(member.value.offset, "a state is an object");
      continue;
    }
    machine.states.emplace(member.key, ReadState(member.key, member.value, jsonata));
  }
  if (start != nullptr) CheckGraph(*states, machine, *start, where);
  definition_.machines[static_cast<size_t>(index)] = std::move(machine);
  --depth_;
  return index;
}

void DefinitionReader::CheckGraph(const Node& states_node, const Machine& machine,
                                  const Node& start, const std::string& where) {
  const auto exists = [&](const std::string& name) { return states_node.Find(name) != nullptr; };
  if (!exists(machine.start_at)) {
    source_.Add(start.offset,
                "\"StartAt\" names \"" + machine.start_at + "\", which is no state of " + where);
    return;
  }
  std::set<std::string> reached = {machine.start_at};
  std::deque<std::string> open = {machine.start_at};
  bool terminal = false;
  while (!open.empty()) {
    const auto found = machine.states.find(open.front());
    open.pop_front();
    if (found == machine.states.end()) continue;
    const State& state = found->second;
    std::vector<std::string> targets = {state.next, state.default_next};
    for (const ChoiceRule& rule : state.choices) targets.push_back(rule.next);
    for (const Catcher& catcher : state.catchers) targets.push_back(catcher.next);
    const bool ends = state.type == StateType::kSucceed || state.type == StateType::kFail ||
                      (state.type != StateType::kChoice && state.next.empty());
    terminal = terminal || ends;
    for (const std::string& target : targets) {
      if (target.empty() || !exists(target)) continue;
      if (reached.insert(target).second) open.push_back(target);
    }
  }
  for (const Node::Member& member : states_node.members) {
    if (!reached.contains(member.key)) {
      source_.Add(member.key_offset, "no state leads to \"" + member.key + "\"");
    }
    const auto found = machine.states.find(member.key);
    if (found == machine.states.end()) continue;
    // Where a name is used says most about a mistake in it.
    const auto check = [&](const Node* at) {
      if (at == nullptr || !at->is_string() || exists(at->text())) return;
      source_.Add(at->offset, "\"" + at->text() + "\" is no state of " + where);
    };
    check(member.value.Find("Next"));
    check(member.value.Find("Default"));
    for (std::string_view list : {"Choices", "Catch"}) {
      const Node* entries = member.value.Find(list);
      if (entries == nullptr) continue;
      for (const Node& entry : entries->items) check(entry.Find("Next"));
    }
  }
  if (!terminal) source_.Add(start.offset, where + " has no state that ends it");
}

State DefinitionReader::ReadState(const std::string& name, const Node& node, bool jsonata) {
  State state;
  state.name = name;
  state.jsonata = jsonata;
  Fields fields(node, source_);
  fields.Find("Comment");
  const Node* type = fields.String("Type");
  if (!fields.Has("Type")) source_.Add(node.offset, "the state \"" + name + "\" has no \"Type\"");
  if (const Node* language = fields.String("QueryLanguage")) {
    state.jsonata = language->text() == "JSONata";
    if (!state.jsonata && language->text() != "JSONPath") {
      source_.Add(language->offset, "\"QueryLanguage\" is \"JSONPath\" or \"JSONata\"");
    } else if (jsonata_machine_ && !state.jsonata && depth_ == 1) {
      source_.Add(language->offset, "a state of a JSONata machine cannot use JSONPath");
    }
  }
  if (type == nullptr) return state;
  const auto known = kTypes.find(type->text());
  if (known == kTypes.end()) {
    source_.Add(type->offset, "there is no state type \"" + type->text() + "\"");
    return state;
  }
  state.type = known->second;
  switch (state.type) {
    case StateType::kTask:
      ReadTask(state, fields, node);
      break;
    case StateType::kPass:
      ReadPass(state, fields);
      break;
    case StateType::kChoice:
      ReadChoice(state, fields, node);
      break;
    case StateType::kWait:
      ReadWait(state, fields, node);
      break;
    case StateType::kSucceed:
      ReadInputAndOutput(state, fields, true);
      break;
    case StateType::kFail:
      ReadFail(state, fields);
      break;
    case StateType::kParallel:
      ReadParallel(state, fields, node);
      break;
    case StateType::kMap:
      ReadMap(state, fields, node);
      break;
  }
  if (state.type != StateType::kChoice && state.type != StateType::kSucceed &&
      state.type != StateType::kFail) {
    ReadNext(state, fields, node);
  }
  fields.RejectOthers(std::string(state.jsonata ? "a JSONata " : "a JSONPath ") +
                          std::string(TypeName(state.type)) + " state",
                      "");
  return state;
}

void DefinitionReader::ReadNext(State& state, Fields& fields, const Node& node) {
  const Node* next = fields.String("Next");
  const Node* end = fields.Find("End");
  const bool ends = end != nullptr && end->kind == Node::Kind::kScalar && end->scalar == Json(true);
  if (end != nullptr && !(end->kind == Node::Kind::kScalar && end->scalar.is_boolean())) {
    source_.Add(end->offset, "\"End\" must be true");
  }
  if (next != nullptr) state.next = next->text();
  if (next != nullptr && end != nullptr) {
    source_.Add(end->offset, "a state has \"Next\" or \"End\", not both");
  }
  if (next == nullptr && !ends) {
    source_.Add(node.offset,
                "the state \"" + state.name + "\" has neither \"Next\" nor \"End\": true");
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
                                        Json::value_t type, double least, double most) {
  Computed computed;
  computed.field = name;
  const Node* literal = fields.Find(name);
  const std::string expected = type == Json::value_t::string
                                   ? "a string"
                                   : "a number from " +
                                         std::to_string(static_cast<int64_t>(least)) + " to " +
                                         std::to_string(static_cast<int64_t>(most));
  if (literal != nullptr) {
    if (state.jsonata && literal->is_string() &&
        (type != Json::value_t::string || literal->text().starts_with("{%"))) {
      computed.query = ReadJsonataText(*literal, source_, jsonata_);
    } else if (const bool wrong_type =
                   type == Json::value_t::string ? !literal->is_string() : !literal->is_number();
               wrong_type || (literal->is_number() && (literal->scalar.get<double>() < least ||
                                                       literal->scalar.get<double>() > most ||
                                                       (type == Json::value_t::number_integer &&
                                                        !literal->scalar.is_number_integer())))) {
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

void DefinitionReader::ReadPass(State& state, Fields& fields) {
  ReadInputAndOutput(state, fields, true);
  if (!state.jsonata) {
    state.parameters = ReadTemplate(state, fields, "Parameters");
    state.result_path = ReadResultPath(fields);
    if (const Node* result = fields.Find("Result")) state.result = MakeValue(result->ToJson());
  }
  state.assign = ReadAssign(state, fields);
}

void DefinitionReader::CheckResource(const Node& node) {
  if (node.is_object()) {
    // CloudFormation puts the name in later.
    const bool reference = node.members.size() == 1 && (node.members[0].key == "Ref" ||
                                                        node.members[0].key.starts_with("Fn::"));
    if (!reference) source_.Add(node.offset, "\"Resource\" must be a string");
    return;
  }
  if (!node.is_string() || node.text().empty()) {
    source_.Add(node.offset, "\"Resource\" must be a string: the ARN of what is to be called");
    return;
  }
  const std::string& text = node.text();
  if (size_t open = text.find("${"); open != std::string::npos) {
    if (text.find('}', open) == std::string::npos) source_.Add(node.offset, "\"${\" is not closed");
    return;
  }
  if (text.find(':') == std::string::npos) {
    source_.Add(node.offset, "\"Resource\" must be an ARN, \"arn:…\"");
    return;
  }
  const size_t function = text.find(":function:");
  if (!text.starts_with("arn:") || text.find(":lambda:") == std::string::npos ||
      function == std::string::npos)
    return;
  const std::string name = text.substr(function + 10);
  const size_t colon = name.find(':');
  if (colon == std::string::npos) return;
  const std::string alias = name.substr(colon + 1);
  const bool good = alias == "$LATEST" ||
                    (!alias.empty() && std::all_of(alias.begin(), alias.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_';
                    }));
  if (!good)
    source_.Add(node.offset, "bad version or alias of a Lambda function: \"" + alias + "\"");
}

void DefinitionReader::ReadTask(State& state, Fields& fields, const Node& node) {
  ReadInputAndOutput(state, fields, true);
  ReadResult(state, fields);
  state.assign = ReadAssign(state, fields);
  if (const Node* resource = fields.Find("Resource")) {
    CheckResource(*resource);
    if (resource->is_string()) state.resource = resource->text();
  } else {
    source_.Add(node.offset, "the Task \"" + state.name + "\" has no \"Resource\"");
  }
  if (const Node* credentials = fields.Find("Credentials")) {
    if (!credentials->is_object()) {
      source_.Add(credentials->offset, "\"Credentials\" must be an object");
    } else {
      state.credentials = ReadTemplate(state, fields, "Credentials");
    }
  }
  state.timeout =
      ReadComputed(state, fields, "TimeoutSeconds", Json::value_t::number_integer, 1, kMaxSeconds);
  state.heartbeat = ReadComputed(state, fields, "HeartbeatSeconds", Json::value_t::number_integer,
                                 1, kMaxSeconds);
  if (state.timeout.literal && state.heartbeat.literal &&
      *state.heartbeat.literal >= *state.timeout.literal) {
    source_.Add(node.Find("HeartbeatSeconds")->offset,
                "\"HeartbeatSeconds\" must be less than \"TimeoutSeconds\"");
  }
  ReadRetry(state, fields);
  ReadCatch(state, fields);
}

void DefinitionReader::ReadWait(State& state, Fields& fields, const Node& node) {
  ReadInputAndOutput(state, fields, true);
  state.assign = ReadAssign(state, fields);
  state.seconds =
      ReadComputed(state, fields, "Seconds", Json::value_t::number_integer, 0, kMaxSeconds);
  state.timestamp = ReadComputed(state, fields, "Timestamp", Json::value_t::string, 0, 0);
  if (state.timestamp.literal) {
    const auto& text = state.timestamp.literal->get_ref<const std::string&>();
    if (!ParseTimestamp(text)) {
      source_.Add(node.Find("Timestamp")->offset,
                  "not a time like \"2016-03-14T01:59:00Z\": \"" + text + "\"");
    }
  }
  int given = 0;
  for (std::string_view name : {"Seconds", "SecondsPath", "Timestamp", "TimestampPath"}) {
    given += fields.Has(name) ? 1 : 0;
  }
  if (given != 1) {
    source_.Add(node.offset,
                "a Wait has exactly one of \"Seconds\", \"Timestamp\" and their paths");
  }
}

void DefinitionReader::ReadFail(State& state, Fields& fields) {
  for (const auto& [name, target] : {std::pair<const char*, Computed*>{"Error", &state.error},
                                     std::pair<const char*, Computed*>{"Cause", &state.cause}}) {
    const std::string path_name = std::string(name) + "Path";
    const Node* path = state.jsonata ? nullptr : fields.Find(path_name);
    if (path != nullptr && path->is_string() && path->text().starts_with("States.")) {
      target->field = path_name;
      auto query = Query::ParsePathOrIntrinsic(path->text());
      if (!query) {
        source_.Add(path->offset, query.error().message);
      } else {
        target->query = *std::move(query);
      }
      if (fields.Find(name) != nullptr) {
        source_.Add(path->offset,
                    "a state has \"" + std::string(name) + "\" or \"" + path_name + "\", not both");
      }
      continue;
    }
    *target = ReadComputed(state, fields, name, Json::value_t::string, 0, 0);
  }
}

Condition DefinitionReader::ReadCondition(const Node& node, Fields* outer, bool top) {
  Condition condition;
  if (!node.is_object()) {
    source_.Add(node.offset, "a choice rule is an object");
    return condition;
  }
  Fields own(node, source_);
  Fields& fields = outer != nullptr ? *outer : own;
  if (++depth_ > kMaxMachineDepth) {
    source_.Add(node.offset, "rules are nested deeper than 100 levels");
    --depth_;
    return condition;
  }
  fields.Find("Comment");
  int operators = 0;
  for (const auto& [name, kind] :
       {std::pair{"And", Condition::Kind::kAnd}, {"Or", Condition::Kind::kOr}}) {
    const Node* parts = fields.Array(name);
    if (parts == nullptr) continue;
    ++operators;
    condition.kind = kind;
    if (parts->items.empty())
      source_.Add(parts->offset, "\"" + std::string(name) + "\" needs at least one rule");
    for (const Node& part : parts->items)
      condition.parts.push_back(ReadCondition(part, nullptr, false));
  }
  if (const Node* part = fields.Object("Not")) {
    ++operators;
    condition.kind = Condition::Kind::kNot;
    condition.parts.push_back(ReadCondition(*part, nullptr, false));
  }
  --depth_;
  const Node* variable = fields.String("Variable");
  if (variable != nullptr) {
    auto query = Query::ParsePath(variable->text());
    if (!query) {
      source_.Add(variable->offset, query.error().message);
    } else {
      condition.variable = *std::move(query);
    }
  }
  for (const Node::Member& member : node.members) {
    if (!SetOperator(member.key, condition)) continue;
    fields.Find(member.key);
    ++operators;
    const bool is_path = member.key.ends_with("Path");
    if (variable == nullptr) source_.Add(node.offset, "a comparison needs a \"Variable\"");
    const Node& value = member.value;
    const auto wrong = [&](std::string_view what) {
      source_.Add(value.offset, "\"" + member.key + "\" must be " + std::string(what));
    };
    if (is_path) {
      if (!value.is_string()) {
        wrong("a path");
        continue;
      }
      auto query = Query::ParsePath(value.text());
      if (!query) {
        source_.Add(value.offset, query.error().message);
      } else {
        condition.path = *std::move(query);
      }
      continue;
    }
    condition.literal = value.ToJson();
    switch (condition.operand) {
      case Condition::Operand::kString:
      case Condition::Operand::kMatches:
        if (!value.is_string()) wrong("a string");
        break;
      case Condition::Operand::kNumeric:
        if (!value.is_number()) wrong("a number");
        break;
      case Condition::Operand::kTimestamp:
        if (!value.is_string() || !ParseTimestamp(value.text()))
          wrong("a time like \"2016-03-14T01:59:00Z\"");
        break;
      case Condition::Operand::kBoolean:
      case Condition::Operand::kIs:
        if (!condition.literal.is_boolean()) wrong("true or false");
        break;
    }
  }
  if (operators != 1) {
    source_.Add(node.offset,
                operators == 0
                    ? "a choice rule needs a comparison, \"And\", \"Or\" or \"Not\""
                    : "a choice rule has exactly one comparison, \"And\", \"Or\" or \"Not\"");
  }
  if (!top) own.RejectOthers("a rule inside a choice rule", "");
  return condition;
}

void DefinitionReader::ReadChoice(State& state, Fields& fields, const Node& node) {
  ReadInputAndOutput(state, fields, true);
  state.assign = ReadAssign(state, fields);
  if (const Node* target = fields.String("Default")) state.default_next = target->text();
  const Node* choices = fields.Array("Choices");
  if (!fields.Has("Choices"))
    source_.Add(node.offset, "the Choice \"" + state.name + "\" has no \"Choices\"");
  if (choices == nullptr) return;
  if (choices->items.empty()) source_.Add(choices->offset, "\"Choices\" needs at least one rule");
  for (const Node& item : choices->items) {
    ChoiceRule rule;
    if (!item.is_object()) {
      source_.Add(item.offset, "a choice rule is an object");
      continue;
    }
    Fields rule_fields(item, source_);
    const Node* next = rule_fields.String("Next");
    if (next != nullptr) rule.next = next->text();
    if (!rule_fields.Has("Next")) source_.Add(item.offset, "a choice rule needs \"Next\"");
    rule.assign = ReadAssign(state, rule_fields);
    if (state.jsonata) {
      rule.output = ReadTemplate(state, rule_fields, "Output");
      rule_fields.Find("Comment");
      rule.condition.kind = Condition::Kind::kJsonata;
      const Node* text = rule_fields.Find("Condition");
      if (text == nullptr) {
        source_.Add(item.offset, "a choice rule in JSONata needs \"Condition\"");
      } else if (text->kind == Node::Kind::kScalar && text->scalar.is_boolean()) {
        rule.condition.constant = text->scalar.get<bool>();
      } else if (!text->is_string()) {
        source_.Add(text->offset, "\"Condition\" must be JSONata or a boolean");
      } else {
        rule.condition.jsonata = ReadJsonataText(*text, source_, jsonata_);
      }
    } else {
      rule.condition = ReadCondition(item, &rule_fields, true);
    }
    rule_fields.RejectOthers("a choice rule", "");
    state.choices.push_back(std::move(rule));
  }
}

std::vector<std::string> DefinitionReader::ReadErrorEquals(Fields& fields, const Node& node,
                                                           bool last) {
  std::vector<std::string> errors;
  const Node* list = fields.Array("ErrorEquals");
  if (!fields.Has("ErrorEquals")) source_.Add(node.offset, "\"ErrorEquals\" is missing");
  if (list == nullptr) return errors;
  if (list->items.empty())
    source_.Add(list->offset, "\"ErrorEquals\" needs at least one error name");
  for (const Node& item : list->items) {
    if (!item.is_string()) {
      source_.Add(item.offset, "an error name is a string");
      continue;
    }
    errors.push_back(item.text());
    if (item.text() != "States.ALL") continue;
    if (list->items.size() > 1) source_.Add(item.offset, "\"States.ALL\" must stand alone");
    if (!last)
      source_.Add(item.offset,
                  "\"States.ALL\" must be in the last entry: nothing behind it is ever used");
  }
  return errors;
}

void DefinitionReader::ReadRetry(State& state, Fields& fields) {
  const Node* list = fields.Array("Retry");
  if (list == nullptr) return;
  for (const Node& item : list->items) {
    if (!item.is_object()) {
      source_.Add(item.offset, "a retrier is an object");
      continue;
    }
    Fields retry(item, source_);
    Retrier retrier;
    retry.Find("Comment");
    retrier.errors = ReadErrorEquals(retry, item, &item == &list->items.back());
    const auto number = [&](std::string_view name, double least, double most, bool whole,
                            auto& target) {
      const Node* node = retry.Find(name);
      if (node == nullptr) return;
      if (!node->is_number() || node->scalar.get<double>() < least ||
          node->scalar.get<double>() > most || (whole && !node->scalar.is_number_integer())) {
        source_.Add(node->offset, "\"" + std::string(name) + "\" must be a" +
                                      (whole ? " whole" : "") + " number from " +
                                      std::to_string(static_cast<int64_t>(least)) + " to " +
                                      std::to_string(static_cast<int64_t>(most)));
        return;
      }
      target = node->scalar.get<double>();
    };
    double attempts = static_cast<double>(retrier.max_attempts);
    number("IntervalSeconds", 1, kMaxSeconds, true, retrier.interval_s);
    number("MaxAttempts", 0, kMaxSeconds, true, attempts);
    number("BackoffRate", 1, 1'000'000, false, retrier.backoff_rate);
    number("MaxDelaySeconds", 1, 31'622'400, true, retrier.max_delay_s);
    retrier.max_attempts = static_cast<int64_t>(attempts);
    if (retrier.max_delay_s && *retrier.max_delay_s <= retrier.interval_s) {
      source_.Add(retry.Find("MaxDelaySeconds")->offset,
                  "\"MaxDelaySeconds\" must be greater than \"IntervalSeconds\"");
    }
    if (const Node* jitter = retry.String("JitterStrategy")) {
      retrier.full_jitter = jitter->text() == "FULL";
      if (!retrier.full_jitter && jitter->text() != "NONE") {
        source_.Add(jitter->offset, "\"JitterStrategy\" is \"FULL\" or \"NONE\"");
      }
    }
    retry.RejectOthers("a retrier", "");
    state.retry.push_back(std::move(retrier));
  }
}

void DefinitionReader::ReadCatch(State& state, Fields& fields) {
  const Node* list = fields.Array("Catch");
  if (list == nullptr) return;
  for (const Node& item : list->items) {
    if (!item.is_object()) {
      source_.Add(item.offset, "a catcher is an object");
      continue;
    }
    Fields catcher_fields(item, source_);
    Catcher catcher;
    catcher_fields.Find("Comment");
    catcher.errors = ReadErrorEquals(catcher_fields, item, &item == &list->items.back());
    if (const Node* next = catcher_fields.String("Next")) catcher.next = next->text();
    if (!catcher_fields.Has("Next")) source_.Add(item.offset, "a catcher needs \"Next\"");
    if (state.jsonata) {
      catcher.output = ReadTemplate(state, catcher_fields, "Output");
    } else {
      catcher.result_path = ReadResultPath(catcher_fields);
    }
    catcher.assign = ReadAssign(state, catcher_fields);
    catcher_fields.RejectOthers(state.jsonata ? "a JSONata catcher" : "a JSONPath catcher", "");
    state.catchers.push_back(std::move(catcher));
  }
}

void DefinitionReader::ReadParallel(State& state, Fields& fields, const Node& node) {
  ReadInputAndOutput(state, fields, true);
  ReadResult(state, fields);
  state.assign = ReadAssign(state, fields);
  ReadRetry(state, fields);
  ReadCatch(state, fields);
  const Node* branches = fields.Array("Branches");
  if (!fields.Has("Branches"))
    source_.Add(node.offset, "the Parallel \"" + state.name + "\" has no \"Branches\"");
  if (branches == nullptr) return;
  if (branches->items.empty())
    source_.Add(branches->offset, "\"Branches\" needs at least one branch");
  for (const Node& branch : branches->items) {
    if (!branch.is_object()) {
      source_.Add(branch.offset, "a branch is an object with \"StartAt\" and \"States\"");
      continue;
    }
    Fields branch_fields(branch, source_);
    state.branches.push_back(
        ReadMachine(branch, false, state.jsonata && jsonata_machine_, branch_fields));
    branch_fields.RejectOthers("a branch", "");
  }
}

void DefinitionReader::ReadMap(State& state, Fields& fields, const Node& node) {
  ReadInputAndOutput(state, fields, true);
  if (!state.jsonata) {
    state.result_selector = ReadTemplate(state, fields, "ResultSelector");
    state.result_path = ReadResultPath(fields);
  }
  state.assign = ReadAssign(state, fields);
  ReadRetry(state, fields);
  ReadCatch(state, fields);
  const Node* processor = fields.Object("ItemProcessor");
  if (const Node* iterator = fields.Object("Iterator")) {
    if (processor != nullptr)
      source_.Add(iterator->offset,
                  "\"Iterator\" is the old name of \"ItemProcessor\": give one of them");
    processor = iterator;
  }
  if (!fields.Has("ItemProcessor") && !fields.Has("Iterator")) {
    source_.Add(node.offset, "the Map \"" + state.name + "\" has no \"ItemProcessor\"");
  }
  if (processor != nullptr) {
    Fields processor_fields(*processor, source_);
    if (const Node* config = processor_fields.Object("ProcessorConfig")) {
      Fields config_fields(*config, source_);
      if (const Node* mode = config_fields.String("Mode")) {
        state.distributed = mode->text() == "DISTRIBUTED";
        if (!state.distributed && mode->text() != "INLINE")
          source_.Add(mode->offset, "\"Mode\" is \"INLINE\" or \"DISTRIBUTED\"");
      }
      if (const Node* type = config_fields.String("ExecutionType");
          type != nullptr && type->text() != "STANDARD" && type->text() != "EXPRESS") {
        source_.Add(type->offset, "\"ExecutionType\" is \"STANDARD\" or \"EXPRESS\"");
      }
      config_fields.RejectOthers("\"ProcessorConfig\"", "");
    }
    state.branches.push_back(
        ReadMachine(*processor, false, state.jsonata && jsonata_machine_, processor_fields));
    processor_fields.RejectOthers("an item processor", "");
  }
  if (state.jsonata) {
    if (const Node* items = fields.Find("Items")) {
      state.items.field = "Items";
      if (items->is_string()) {
        state.items.query = ReadJsonataText(*items, source_, jsonata_);
      } else if (items->is_array()) {
        state.items_template = Template::ReadJsonata(*items, "Items", source_, jsonata_);
      } else {
        source_.Add(items->offset, "\"Items\" must be an array or JSONata");
      }
    }
  } else {
    if (const Node* items = fields.String("ItemsPath")) {
      state.items.field = "ItemsPath";
      auto query = Query::ParsePath(items->text());
      if (!query)
        source_.Add(items->offset, query.error().message);
      else
        state.items.query = *std::move(query);
    }
  }
  state.item_selector = ReadTemplate(state, fields, "ItemSelector");
  if (!state.jsonata && fields.Has("Parameters")) {
    if (state.item_selector)
      source_.Add(fields.Find("Parameters")->offset,
                  "\"Parameters\" is the old name of \"ItemSelector\": give one of them");
    state.item_selector = ReadTemplate(state, fields, "Parameters");
  }
  state.max_concurrency =
      ReadComputed(state, fields, "MaxConcurrency", Json::value_t::number_integer, 0, kMaxSeconds);
  state.tolerated_count = ReadComputed(state, fields, "ToleratedFailureCount",
                                       Json::value_t::number_integer, 0, kMaxSeconds);
  state.tolerated_percentage = ReadComputed(state, fields, "ToleratedFailurePercentage",
                                            Json::value_t::number_float, 0, 100);
  if (const Node* label = fields.String("Label")) {
    state.label = label->text();
    if (CountChars(label->text()) > 40)
      source_.Add(label->offset, "\"Label\" has at most 40 characters");
  }
  if (const Node* reader = fields.Object("ItemReader")) ReadItemReader(state, *reader);
  if (const Node* batcher = fields.Object("ItemBatcher")) ReadItemBatcher(state, *batcher);
  if (const Node* writer = fields.Object("ResultWriter")) ReadResultWriter(state, *writer);
}

void DefinitionReader::ReadItemReader(State& state, const Node& node) {
  Fields fields(node, source_);
  ItemReader reader;
  if (const Node* resource = fields.String("Resource")) reader.resource = resource->text();
  if (!fields.Has("Resource")) source_.Add(node.offset, "\"ItemReader\" has no \"Resource\"");
  reader.parameters = ReadTemplate(state, fields, state.jsonata ? "Arguments" : "Parameters");
  if (const Node* config = fields.Object("ReaderConfig")) {
    Fields config_fields(*config, source_);
    if (const Node* type = config_fields.String("InputType")) {
      reader.input_type = type->text();
      const std::set<std::string> types = {"CSV", "JSON", "JSONL", "MANIFEST", "PARQUET"};
      if (!types.contains(reader.input_type))
        source_.Add(type->offset, "\"InputType\" is \"CSV\", \"JSON\", \"JSONL\" or \"MANIFEST\"");
    }
    config_fields.Find("ManifestType");
    config_fields.Find("Transformation");
    if (const Node* delimiter = config_fields.String("CSVDelimiter")) {
      static const std::map<std::string, std::string> kDelimiters = {
          {"COMMA", ","}, {"PIPE", "|"}, {"SEMICOLON", ";"}, {"SPACE", " "}, {"TAB", "\t"}};
      const auto found = kDelimiters.find(delimiter->text());
      if (found == kDelimiters.end())
        source_.Add(delimiter->offset, "\"CSVDelimiter\" is COMMA, PIPE, SEMICOLON, SPACE or TAB");
      else
        reader.csv_delimiter = found->second;
    }
    const Node* location = config_fields.String("CSVHeaderLocation");
    const Node* headers = config_fields.Array("CSVHeaders");
    if (location != nullptr && location->text() == "GIVEN" && headers == nullptr) {
      source_.Add(location->offset, "\"CSVHeaderLocation\" GIVEN needs \"CSVHeaders\"");
    }
    if (headers != nullptr) {
      for (const Node& header : headers->items) {
        if (!header.is_string())
          source_.Add(header.offset, "a header is a string");
        else
          reader.csv_headers.push_back(header.text());
      }
    }
    reader.max_items = ReadComputed(state, config_fields, "MaxItems", Json::value_t::number_integer,
                                    1, 100'000'000);
    config_fields.RejectOthers("\"ReaderConfig\"", "");
  }
  fields.RejectOthers("\"ItemReader\"", "");
  state.item_reader = std::move(reader);
}

void DefinitionReader::ReadItemBatcher(State& state, const Node& node) {
  Fields fields(node, source_);
  ItemBatcher batcher;
  batcher.batch_input = ReadTemplate(state, fields, "BatchInput");
  batcher.max_items = ReadComputed(state, fields, "MaxItemsPerBatch", Json::value_t::number_integer,
                                   1, 100'000'000);
  batcher.max_bytes = ReadComputed(state, fields, "MaxInputBytesPerBatch",
                                   Json::value_t::number_integer, 1, 262'144);
  if (!batcher.max_items && !batcher.max_bytes) {
    source_.Add(node.offset,
                "\"ItemBatcher\" needs \"MaxItemsPerBatch\" or \"MaxInputBytesPerBatch\"");
  }
  fields.RejectOthers("\"ItemBatcher\"", "");
  state.item_batcher = std::move(batcher);
}

void DefinitionReader::ReadResultWriter(State& state, const Node& node) {
  Fields fields(node, source_);
  ResultWriter writer;
  if (const Node* resource = fields.String("Resource")) writer.resource = resource->text();
  if (writer.resource.empty()) writer.transformation = "COMPACT";
  writer.parameters = ReadTemplate(state, fields, state.jsonata ? "Arguments" : "Parameters");
  if (const Node* config = fields.Object("WriterConfig")) {
    Fields config_fields(*config, source_);
    if (const Node* type = config_fields.String("OutputType")) {
      writer.output_type = type->text();
      if (writer.output_type != "JSON" && writer.output_type != "JSONL")
        source_.Add(type->offset, "\"OutputType\" is \"JSON\" or \"JSONL\"");
    }
    if (const Node* transformation = config_fields.String("Transformation")) {
      writer.transformation = transformation->text();
      const std::set<std::string> known = {"NONE", "FLATTEN", "COMPACT"};
      if (!known.contains(writer.transformation))
        source_.Add(transformation->offset,
                    "\"Transformation\" is \"NONE\", \"FLATTEN\" or \"COMPACT\"");
    }
    config_fields.RejectOthers("\"WriterConfig\"", "");
  }
  fields.RejectOthers("\"ResultWriter\"", "");
  state.result_writer = std::move(writer);
}

}  // namespace muster::states
