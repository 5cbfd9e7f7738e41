#include "states/asl/json_path.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "states/asl/json_path_filter.h"
#include "states/asl/path_parser.h"

namespace muster::states {
namespace {

using Step = JsonPath::Step;
using Steps = std::span<const Step>;

const Json* Element(const Json& array, int64_t index) {
  const auto size = static_cast<int64_t>(array.size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) return nullptr;
  return &array[static_cast<size_t>(index)];
}

const Json* Member(const Json& object, const std::string& name) {
  if (!object.is_object()) return nullptr;
  auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// Collects what an indefinite path matches, in document order.
class Collector {
 public:
  explicit Collector(const Json& root) : root_(root) {}

  void Walk(const Json& node, Steps steps) {
    if (steps.empty()) {
      found_.push_back(node);
      return;
    }
    if (steps.front().deep) return Scan(node, steps);
    Apply(node, steps);
  }

  Json Take() { return std::move(found_); }

 private:
  // The rest of the path may match from any descendant.
  void Scan(const Json& node, Steps steps) {
    Apply(node, steps);
    if (!node.is_structured()) return;
    for (const Json& child : node) Scan(child, steps);
  }

  void Apply(const Json& node, Steps steps) {
    const Step& step = steps.front();
    const Steps rest = steps.subspan(1);
    switch (step.kind) {
      case Step::Kind::kNames:
        return Names(node, step, rest);
      case Step::Kind::kIndices:
        if (!node.is_array()) return;
        for (int64_t index : step.indices) {
          if (const Json* element = Element(node, index)) Walk(*element, rest);
        }
        return;
      case Step::Kind::kSlice:
        return Slice(node, step, rest);
      case Step::Kind::kWildcard:
        if (!node.is_structured()) return;
        for (const Json& child : node) Walk(child, rest);
        return;
      case Step::Kind::kFilter:
        return Filter(node, step, rest);
    }
  }

  void Names(const Json& node, const Step& step, Steps rest) {
    if (step.names.size() == 1) {
      if (const Json* member = Member(node, step.names.front())) Walk(*member, rest);
      return;
    }
    // Several names in the last step give one object, as in Jayway's library.
    if (!node.is_object()) return;
    if (!rest.empty()) {
      for (const std::string& name : step.names) {
        if (const Json* member = Member(node, name)) Walk(*member, rest);
      }
      return;
    }
    Json chosen = Json::object();
    for (const std::string& name : step.names) {
      if (const Json* member = Member(node, name)) chosen[name] = *member;
    }
    found_.push_back(std::move(chosen));
  }

  void Slice(const Json& node, const Step& step, Steps rest) {
    if (!node.is_array()) return;
    const auto size = static_cast<int64_t>(node.size());
    int64_t from = step.from.value_or(0);
    int64_t to = step.to.value_or(size);
    if (from < 0) from = std::max<int64_t>(0, from + size);
    if (to < 0) to += size;
    for (int64_t i = from; i < std::min(to, size); ++i) Walk(node[static_cast<size_t>(i)], rest);
  }

  void Filter(const Json& node, const Step& step, Steps rest) {
    if (node.is_object()) {
      if (FilterMatches(*step.filter, node, root_)) Walk(node, rest);
    } else if (node.is_array()) {
      for (const Json& element : node) {
        if (FilterMatches(*step.filter, element, root_)) Walk(element, rest);
      }
    }
  }

  const Json& root_;
  Json found_ = Json::array();
};

std::string Written(const Step& step) {
  if (step.kind == Step::Kind::kIndices) return "[" + std::to_string(step.indices.front()) + "]";
  return "['" + step.names.front() + "']";
}

std::string_view JavaType(const Json& value) {
  switch (value.type()) {
    case Json::Type::kNull:
      return "null";
    case Json::Type::kBoolean:
      return "java.lang.Boolean";
    case Json::Type::kInteger:
    case Json::Type::kUnsigned:
      return "java.lang.Integer";
    case Json::Type::kFloat:
      return "java.lang.Double";
    case Json::Type::kString:
      return "java.lang.String";
    default:
      return "java.util.ArrayList";
  }
}

bool IsDefinite(Steps steps) {
  return std::all_of(steps.begin(), steps.end(), [](const Step& step) {
    return !step.deep && ((step.kind == Step::Kind::kNames && step.names.size() == 1) ||
                          (step.kind == Step::Kind::kIndices && step.indices.size() == 1));
  });
}

}  // namespace

std::optional<Json> FindSteps(const std::vector<Step>& steps, const Json& start, const Json& root) {
  Collector collector(root);
  collector.Walk(start, steps);
  Json found = collector.Take();
  if (IsDefinite(steps)) {
    if (found.empty()) return {};
    return std::move(found.front());
  }
  if (found.empty()) return {};
  return found;
}

Result<JsonPath> JsonPath::Parse(std::string_view text) {
  PathParser parser(text);
  MUSTER_ASSIGN(std::vector<Step> steps, parser.ParseWhole());
  JsonPath path;
  path.text_ = std::string(text);
  path.steps_ = std::move(steps);
  path.definite_ = IsDefinite(path.steps_);
  return path;
}

bool JsonPath::IsReference() const {
  return definite_ && std::all_of(steps_.begin(), steps_.end(), [](const Step& step) {
           return step.kind == Step::Kind::kNames || step.indices.front() >= 0;
         });
}

const Json* JsonPath::FindNode(const Json& root) const {
  const Json* node = &root;
  for (const Step& step : steps_) {
    if (step.kind == Step::Kind::kNames) {
      node = Member(*node, step.names.front());
    } else {
      node = node->is_array() ? Element(*node, step.indices.front()) : nullptr;
    }
    if (node == nullptr) return nullptr;
  }
  return node;
}

Expected<Json, std::string> JsonPath::Find(const Json& root) const {
  if (!definite_) {
    Collector collector(root);
    collector.Walk(root, steps_);
    return collector.Take();
  }
  const Json* node = &root;
  std::string way = "$";
  for (const Step& step : steps_) {
    const bool leaf = &step == &steps_.back();
    const Json* next = nullptr;
    if (step.kind == Step::Kind::kNames) {
      if (!node->is_object()) {
        return Unexpected("Expected to find an object with property " + Written(step) +
                          " in path " + way + " but found '" + std::string(JavaType(*node)) +
                          "'. This is not a json object according to the JsonProvider: "
                          "'com.jayway.jsonpath.spi.json.JacksonJsonNodeJsonProvider'.");
      }
      next = Member(*node, step.names.front());
    } else {
      if (!node->is_array()) {
        return Unexpected(
            "Filter: " + Written(step) +
            " can only be applied to arrays. Current context is: " + ToJsonText(*node));
      }
      next = Element(*node, step.indices.front());
    }
    way += Written(step);
    if (next == nullptr) {
      return Unexpected((leaf || step.kind == Step::Kind::kIndices ? "No results for path: "
                                                                   : "Missing property in path ") +
                        way);
    }
    node = next;
  }
  return *node;
}

bool JsonPath::Put(Json& root, Json value) const {
  Json* node = &root;
  for (const Step& step : steps_) {
    if (step.kind == Step::Kind::kNames) {
      if (!node->is_object()) return false;
      Json& next = (*node)[step.names.front()];
      const bool leaf = &step == &steps_.back();
      if (!leaf && next.is_null()) next = Json::object();
      node = &next;
    } else {
      const int64_t index = step.indices.front();
      if (!node->is_array() || Element(*node, index) == nullptr) return false;
      node = &(*node)[static_cast<size_t>(index)];
    }
  }
  *node = std::move(value);
  return true;
}

}  // namespace muster::states
