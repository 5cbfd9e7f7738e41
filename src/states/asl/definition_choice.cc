#include "core/timestamp.h"
#include "states/asl/definition_reader.h"

namespace muster::states {

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

}  // namespace muster::states
