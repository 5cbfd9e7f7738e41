#include "states/asl/definition_reader.h"

#include <deque>

namespace muster::states {
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
                "\"StartAt\" names \"" + machine.start_at + "\", which is not a state of " + where);
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
    // Reported where the name is used, since that shows the mistake best.
    const auto check = [&](const Node* at) {
      if (at == nullptr || !at->is_string() || exists(at->text())) return;
      source_.Add(at->offset, "\"" + at->text() + "\" is not a state of " + where);
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
  const auto known = kStateTypes.Find(type->text());
  if (!known) {
    source_.Add(type->offset, "unknown state type \"" + type->text() + "\"");
    return state;
  }
  state.type = *known;
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
                          std::string(kStateTypes.NameOf(state.type)) + " state",
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

}  // namespace muster::states
