#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/sha256.h"
#include "states/asl/items.h"
#include "states/run/interpreter.h"
#include "states/run/interpreter_scope.h"

namespace muster::states {
namespace {

constexpr size_t kMaxPathBytes = 350;

// Keys in the store are bounded: a deeply nested branch is named by the hash of its path.
std::string Shortened(std::string path) {
  if (path.size() <= kMaxPathBytes) return path;
  return "~" + Sha256Hex(path);
}

std::string Padded(int64_t index) {
  std::string text = std::to_string(index);
  return std::string(text.size() < 8 ? 8 - text.size() : 0, '0') + text;
}

// Not "inf" or "nan", which from_chars reads.
std::optional<double> NumberInQuotes(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

}  // namespace

std::string ChildPrefix(const Flow& parent) {
  return Shortened((parent.path.empty() ? "" : parent.path + "/") + std::to_string(parent.entry) +
                   (parent.retry_count > 0 ? "r" + std::to_string(parent.retry_count) : "")) +
         ".";
}

std::string ChildPath(const Flow& parent, int64_t index) {
  return ChildPrefix(parent) + Padded(index);
}

void Interpreter::AttemptParallel(Flow& flow) {
  const State& state = StateOf(flow);
  auto input = EffectiveInput(flow);
  if (!input) return StateFailed(flow, std::move(input).error());
  Value effective = *std::move(input);
  if (state.parameters) {
    const ScopeHolder scope(*this, flow, effective.get());
    auto parameters = state.parameters->Evaluate(*scope);
    if (!parameters) return StateFailed(flow, std::move(parameters).error());
    effective = *std::move(parameters);
  }
  Add(flow, "ParallelStateStarted");
  flow.children = ChildrenProgress{
      .items = effective, .shared = true, .total = static_cast<int64_t>(state.branches.size())};
  flow.wants = Wants::kChildren;
}

void Interpreter::AttemptMap(Flow& flow) {
  const State& state = StateOf(flow);
  auto input = EffectiveInput(flow);
  if (!input) return StateFailed(flow, std::move(input).error());
  ScopeHolder scope(*this, flow, input->get());
  auto concurrency = Number(state.max_concurrency, scope);
  if (!concurrency) return StateFailed(flow, std::move(concurrency).error());
  if (concurrency->value_or(0) < 0) {
    return StateFailed(flow, {.error = kRuntime,
                              .cause = "Expected non-negative integer for MaxConcurrency, got '" +
                                       std::to_string(**concurrency) + "' instead."});
  }
  flow.children = ChildrenProgress{.concurrency = concurrency->value_or(0)};
  if (state.item_reader) return AskForItems(flow, scope, *input);
  auto items = ItemsOf(state, scope, **input);
  if (!items) return StateFailed(flow, std::move(items).error());
  Add(flow, "MapStateStarted", {}, {}, {}, {{"length", items->size()}});
  StartItems(flow, *std::move(items));
}

void Interpreter::AskForItems(Flow& flow, const ScopeHolder& scope, const Value& input) {
  const State& state = StateOf(flow);
  Add(flow, "MapStateStarted", {}, {}, {}, {{"length", 0}});
  TaskProgress task{.purpose = TaskProgress::Purpose::kReadItems,
                    .resource = state.item_reader->resource,
                    .input = input};
  task.token = info_.name + ":" + flow.path + ":" + std::to_string(flow.entry) + ":" +
               std::to_string(flow.retry_count) + ":items";
  if (state.item_reader->parameters) {
    auto parameters = state.item_reader->parameters->Evaluate(*scope);
    if (!parameters) return StateFailed(flow, std::move(parameters).error());
    task.input = *std::move(parameters);
  }
  flow.task = std::move(task);
  flow.wants = Wants::kTask;
}

Fallible<Json> Interpreter::ItemsOf(const State& state, const ScopeHolder& scope,
                                    const Json& input) const {
  if (state.items_template) {
    STATES_ASSIGN(const Value items, state.items_template->Evaluate(*scope));
    return *items;
  }
  if (state.items.query && state.jsonata) {
    STATES_ASSIGN(Json items, state.items.query->Evaluate(*scope, "Items"));
    if (items.is_array()) return items;
    return Unexpected(
        Failure{.error = kQueryError,
                .cause = "The JSONata expression '" + state.items.query->text +
                         "' specified for the field 'Items' returned an unexpected result type. "
                         "Expected 'array', but was '" +
                         std::string(JsonataType(items)) + "' for value: " + ToJsonText(items),
                .location = "Items"});
  }
  if (state.items.query) {
    auto found = state.items.query->Find(*scope);
    if (!found)
      return RuntimeFailure("Invalid path '" + state.items.query->text + "' : " + found.error());
    if (found->is_array()) return *std::move(found);
    return RuntimeFailure("Reference path \"" + state.items.query->text +
                          "\" must point to array.");
  }
  if (input.is_array()) return input;
  return Unexpected(
      Failure{.error = state.jsonata ? kQueryError : kRuntime,
              .cause = "Map state input must be an array but was: " + ToJsonText(input)});
}

Fallible<Json> Interpreter::ReadItems(const Flow& flow, const Json& answer) {
  const State& state = StateOf(flow);
  auto input = EffectiveInput(flow);
  if (!input) return Unexpected(std::move(input).error());
  const ScopeHolder scope(*this, flow, input->get());
  STATES_ASSIGN(const std::optional<int64_t> most, Number(state.item_reader->max_items, scope));
  if (most && *most <= 0) return Fail("States.ItemReaderFailed", "field MaxItems must be positive");
  auto items = ParseItems(*state.item_reader, answer);
  if (!items) {
    return Unexpected(Failure{
        .error = "States.ItemReaderFailed", .cause = items.error().message, .internal = false});
  }
  if (most && items->size() > static_cast<size_t>(*most)) {
    items->get_ref<Json::Array&>().resize(static_cast<size_t>(*most));
  }
  return *std::move(items);
}

void Interpreter::StartItems(Flow& flow, Json items) {
  auto input = EffectiveInput(flow);
  if (!input) return StateFailed(flow, std::move(input).error());
  const ScopeHolder scope(*this, flow, input->get());
  if (auto planned = PlanMap(flow, scope, std::move(items)); !planned) {
    return StateFailed(flow, std::move(planned).error());
  }
  if (StateOf(flow).distributed)
    Add(flow, "MapRunStarted", {}, {}, {}, {{"mapRunArn", MapRun(flow)}});
  flow.wants = Wants::kChildren;
  if (flow.children->total > 0) return;
  const auto none = [](int64_t) { return std::vector<ChildResult>{}; };
  static_cast<void>(ChildrenSucceeded(flow, none));
}

Fallible<void> Interpreter::PlanMap(Flow& flow, const ScopeHolder& scope, Json items) {
  const State& state = StateOf(flow);
  ChildrenProgress& children = *flow.children;
  STATES_ASSIGN(const std::optional<int64_t> count, Number(state.tolerated_count, scope));
  if (count && *count < 0) return RuntimeFailure("ToleratedFailureCount cannot be negative.");
  children.tolerated_count = count.value_or(0);
  STATES_ASSIGN(children.tolerated_percentage, PercentageOf(state, scope));
  if (state.item_batcher) {
    STATES_ASSIGN(items, BatchesOf(flow, scope, items));
  }
  children.total = static_cast<int64_t>(items.size());
  children.items = MakeValue(std::move(items));
  return {};
}

Fallible<double> Interpreter::PercentageOf(const State& state, const ScopeHolder& scope) const {
  const Computed& computed = state.tolerated_percentage;
  double percentage = computed.literal ? computed.literal->get<double>() : 0;
  if (computed.query) {
    Json value;
    if (state.jsonata) {
      STATES_ASSIGN(value, computed.query->Evaluate(*scope, computed.field));
    } else {
      auto found = computed.query->Find(*scope);
      if (!found)
        return RuntimeFailure("Invalid path '" + computed.query->text + "' : " + found.error());
      value = *std::move(found);
    }
    // As on AWS, a number in quotes is accepted.
    if (const auto number = NumberInQuotes(value); number && !state.jsonata) value = *number;
    if (!value.is_number()) {
      const std::string shown = value.is_string() ? value.get<std::string>() : ToJsonText(value);
      return RuntimeFailure("The " + computed.field + " field refers to value \"" + shown +
                            "\" which is not a valid float: " + computed.query->text);
    }
    percentage = value.get<double>();
  }
  if (percentage < 0 || percentage > 100)
    return RuntimeFailure("ToleratedFailurePercentage must be between 0 and 100.");
  return percentage;
}

Fallible<Json> Interpreter::BatchesOf(const Flow& flow, const ScopeHolder& scope,
                                      const Json& items) const {
  const State& state = StateOf(flow);
  Json selected = Json::array();
  Flow iteration = flow;
  for (size_t i = 0; i < items.size(); ++i) {
    iteration.map_index = static_cast<int64_t>(i);
    iteration.map_value = MakeValue(items[i]);
    const ScopeHolder item_scope(*this, iteration, (*scope).input);
    if (state.item_selector) {
      STATES_ASSIGN(const Value item, state.item_selector->Evaluate(*item_scope));
      selected.push_back(*item);
    } else {
      selected.push_back(items[i]);
    }
  }
  STATES_ASSIGN(const std::optional<int64_t> most_items,
                Number(state.item_batcher->max_items, scope));
  STATES_ASSIGN(const std::optional<int64_t> most_bytes,
                Number(state.item_batcher->max_bytes, scope));
  Value batch_input;
  if (state.item_batcher->batch_input) {
    STATES_ASSIGN(batch_input, state.item_batcher->batch_input->Evaluate(*scope));
  }
  return MakeBatches(
      selected, batch_input ? *batch_input : Json(), most_items.value_or(INT64_MAX),
      static_cast<size_t>(most_bytes.value_or(static_cast<int64_t>(kMaxPayloadBytes))));
}

Fallible<Flow> Interpreter::StartChild(Flow& parent) {
  const State& state = StateOf(parent);
  ChildrenProgress& children = *parent.children;
  const int64_t index = children.started++;
  Flow child;
  child.path = ChildPath(parent, index);
  child.last_event = parent.last_event;
  if (!state.distributed) {
    child.variables = parent.variables;
    child.map_index = parent.map_index;
    child.map_value = parent.map_value;
  }
  if (state.type == StateType::kParallel) {
    child.machine = state.branches[static_cast<size_t>(index)];
    child.input = children.items;
  } else {
    child.machine = state.branches.front();
    child.map_index = index;
    child.map_value =
        MakeValue((*children.items)[static_cast<size_t>(index - children.items_from)]);
    child.input = child.map_value;
    if (!state.distributed)
      Add(parent, "MapIterationStarted", state.name, {}, {}, {{"index", index}});
    child.last_event = parent.last_event;
    if (state.item_selector && !state.item_batcher) {
      STATES_ASSIGN(const Value input, EffectiveInput(parent));
      // The selector belongs to the Map, but sees the item.
      Flow view = parent;
      view.map_index = child.map_index;
      view.map_value = child.map_value;
      const ScopeHolder scope(*this, view, input.get());
      STATES_ASSIGN(child.input, state.item_selector->Evaluate(*scope));
    }
  }
  child.state = definition_->machines[static_cast<size_t>(child.machine)].start_at;
  return child;
}

bool Interpreter::ChildEnded(Flow& parent, const Flow& child) {
  const State& state = StateOf(parent);
  ChildrenProgress& children = *parent.children;
  const bool failed = child.status != FlowStatus::kSucceeded;
  if (state.type == StateType::kMap && !state.distributed) {
    const std::string type = child.status == FlowStatus::kSucceeded ? "MapIterationSucceeded"
                             : child.status == FlowStatus::kAborted ? "MapIterationAborted"
                                                                    : "MapIterationFailed";
    Add(parent, type, state.name, {}, {}, {{"index", child.map_index.value_or(0)}});
  }
  if (!failed) return false;
  ++children.failed;
  if (state.type != StateType::kMap || !state.distributed) return true;
  const double percentage =
      100.0 * static_cast<double>(children.failed) / static_cast<double>(children.total);
  const bool by_count = children.failed > children.tolerated_count;
  const bool by_percentage = percentage > children.tolerated_percentage;
  // Each limit that is given must hold; without any, nothing is tolerated.
  if (state.tolerated_count && state.tolerated_percentage) return by_count || by_percentage;
  if (state.tolerated_percentage) return by_percentage;
  return by_count;
}

}  // namespace muster::states
