#include "states/asl/definition_reader.h"

namespace muster::states {

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

}  // namespace muster::states
