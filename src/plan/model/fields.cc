#include "plan/model/fields.h"

#include <algorithm>
#include <cmath>

#include "core/number.h"
#include "core/secrets.h"
#include "core/suggest.h"

namespace muster::plan {
namespace {

constexpr int64_t kLongestSeconds = 365LL * 86'400;  // AWS's limit for an execution
constexpr size_t kMostNamesInAHint = 12;

template <class T>
bool ParseAll(std::string_view text, T& value) {
  const auto number = ParseNumber<T>(text);
  value = number.value_or(value);
  return number.has_value();
}

bool ParseSeconds(std::string_view text, int64_t& seconds) {
  if (text.empty()) return false;
  const char unit = text.back();
  const int64_t factor = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3'600 : 0;
  text.remove_suffix(1);
  int64_t number = 0;
  if (factor == 0 || !ParseAll(text, number)) return false;
  if (number < 0 || number > kLongestSeconds / factor) return false;
  seconds = number * factor;
  return true;
}

}  // namespace

void Problems::Add(TextPosition position, std::string_view reason, std::string_view hint) {
  const Error error{Code::kInvalid, AtPosition(origin_, position, reason), std::string(hint)};
  list_.push_back({position, Redact(error.ToString())});
}

std::vector<std::string> Problems::Take() {
  std::stable_sort(list_.begin(), list_.end(), [](const Problem& a, const Problem& b) {
    return std::pair(a.position.line, a.position.column) <
           std::pair(b.position.line, b.position.column);
  });
  std::vector<std::string> texts;
  for (Problem& problem : list_) texts.push_back(std::move(problem.text));
  list_.clear();
  return texts;
}

FieldReader::FieldReader(Problems& problems, const YamlNode& node, std::string what)
    : problems_(problems), node_(node), what_(std::move(what)) {
  if (node_.kind != YamlNode::Kind::kMap && node_.kind != YamlNode::Kind::kNull)
    problems_.Add(node_.position, what_ + " is not a map of fields");
}

FieldReader::~FieldReader() {
  const std::vector<std::string> names(asked_.begin(), asked_.end());
  for (const YamlEntry& entry : node_.entries) {
    if (asked_.contains(entry.key.text)) continue;
    problems_.Add(entry.key.position, what_ + " has no field '" + entry.key.text + "'",
                  SuggestName(entry.key.text, names));
  }
}

const YamlNode* FieldReader::Find(std::string_view name) {
  asked_.emplace(name);
  return node_.Find(name);
}

const YamlNode* FieldReader::Need(std::string_view name) {
  const YamlNode* node = Find(name);
  if (node == nullptr) problems_.Add(node_.position, what_ + " has no " + std::string(name));
  return node;
}

void FieldReader::Text(std::string_view name, std::string& value) {
  const YamlNode* node = Find(name);
  if (node == nullptr) return;
  if (node->kind != YamlNode::Kind::kScalar || node->text.empty()) {
    problems_.Add(node->position, std::string(name) + " is not a text");
    return;
  }
  value = node->text;
}

void FieldReader::Flag(std::string_view name, bool& value) {
  const YamlNode* node = Find(name);
  if (node == nullptr) return;
  if (node->text != "true" && node->text != "false") {
    problems_.Add(node->position, std::string(name) + " is neither true nor false");
    return;
  }
  value = node->text == "true";
}

void FieldReader::Integer(std::string_view name, int64_t low, int64_t high, int64_t& value) {
  std::optional<int64_t> given;
  Integer(name, low, high, given);
  value = given.value_or(value);
}

void FieldReader::Integer(std::string_view name, int64_t low, int64_t high,
                          std::optional<int64_t>& value) {
  const YamlNode* node = Find(name);
  if (node == nullptr) return;
  int64_t number = 0;
  if (!ParseAll(node->text, number) || number < low || number > high) {
    problems_.Add(node->position, std::string(name) + " is not a whole number from " +
                                      std::to_string(low) + " to " + std::to_string(high));
    return;
  }
  value = number;
}

void FieldReader::Number(std::string_view name, double low, double high, double& value) {
  const YamlNode* node = Find(name);
  if (node == nullptr) return;
  double number = 0;
  if (!ParseAll(node->text, number) || !(number >= low && number <= high)) {
    problems_.Add(node->position, std::string(name) + " is not a number from " + ToJsonText(low) +
                                      " to " + ToJsonText(high));
    return;
  }
  value = number;
}

void FieldReader::NumberRange(std::string_view name, double low, double high, SecondsRange& value) {
  const YamlNode* node = Find(name);
  if (node == nullptr) return;
  const std::string_view text = node->text;
  const size_t dots = text.find("..");
  SecondsRange range;
  const bool good = ParseAll(text.substr(0, dots), range.min) &&
                    (dots == text.npos || ParseAll(text.substr(dots + 2), range.max));
  if (dots == text.npos) range.max = range.min;
  if (!good || range.min < low || range.max > high || range.max < range.min) {
    problems_.Add(node->position, std::string(name) + " is not a range such as 1000..2000");
    return;
  }
  value = range;
}

void FieldReader::Seconds(std::string_view name, int64_t& value) {
  const YamlNode* node = Find(name);
  if (node == nullptr) return;
  int64_t seconds = 0;
  if (!ParseSeconds(node->text, seconds) || seconds < 1) {
    problems_.Add(node->position, std::string(name) + " is not a time such as 30s, 5m or 2h");
    return;
  }
  value = seconds;
}

void FieldReader::TimeRange(std::string_view name, std::optional<SecondsRange>& value) {
  const YamlNode* node = Find(name);
  if (node == nullptr) return;
  const std::string_view text = node->text;
  const size_t dots = text.find("..");
  int64_t min = 0;
  int64_t max = 0;
  const bool good = ParseSeconds(text.substr(0, dots), min) &&
                    ParseSeconds(dots == text.npos ? text : text.substr(dots + 2), max);
  if (!good || max < min) {
    problems_.Add(node->position,
                  std::string(name) + " is neither a time such as 5m nor a range such as 5m..10m");
    return;
  }
  value = SecondsRange{static_cast<double>(min), static_cast<double>(max)};
}

void FieldReader::Choice(std::string_view name, const std::vector<std::string>& words,
                         size_t& value) {
  const YamlNode* node = Find(name);
  if (node == nullptr) return;
  const auto found = std::find(words.begin(), words.end(), node->text);
  if (found == words.end()) {
    problems_.Add(node->position, std::string(name) + " cannot be '" + node->text + "'",
                  SuggestName(node->text, words));
    return;
  }
  value = static_cast<size_t>(found - words.begin());
}

void FieldReader::Texts(std::string_view name, std::vector<Reference>& values) {
  const YamlNode* node = Find(name);
  if (node == nullptr) return;
  if (node->kind == YamlNode::Kind::kScalar) {
    values.push_back({node->text, node->position});
    return;
  }
  if (node->kind != YamlNode::Kind::kSequence) {
    problems_.Add(node->position, std::string(name) + " is neither a text nor a list of texts");
    return;
  }
  for (const YamlNode& item : node->items) {
    if (item.kind == YamlNode::Kind::kScalar && !item.text.empty()) {
      values.push_back({item.text, item.position});
    } else {
      problems_.Add(item.position, std::string(name) + " holds something that is not a text");
    }
  }
}

std::string SuggestName(const std::string& word, const std::vector<std::string>& candidates) {
  if (auto near = DidYouMean(word, candidates)) return "did you mean '" + *near + "'?";
  if (candidates.empty() || candidates.size() > kMostNamesInAHint) return "";
  std::string names;
  for (const std::string& name : candidates) names += (names.empty() ? "" : ", ") + name;
  return "expected one of: " + names;
}

}  // namespace muster::plan
