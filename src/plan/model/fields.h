#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/yaml.h"
#include "plan/model/plan.h"

namespace muster::plan {

// Collects all problems of a file, to report them together.
class Problems {
 public:
  explicit Problems(std::string origin) : origin_(std::move(origin)) {}

  void Add(TextPosition position, std::string_view reason, std::string_view hint = "");
  bool empty() const { return list_.empty(); }

  // Sorted by position.
  std::vector<std::string> Take();

 private:
  struct Problem {
    TextPosition position;
    std::string text;
  };
  std::string origin_;
  std::vector<Problem> list_;
};

// The fields of one map. Each is read by name; those never read are problems. A field with a
// problem is reported, and its value left unchanged.
class FieldReader {
 public:
  FieldReader(Problems& problems, const YamlNode& node, std::string what);
  // Reports the fields that were not read.
  ~FieldReader();
  FieldReader(const FieldReader&) = delete;
  FieldReader& operator=(const FieldReader&) = delete;

  const YamlNode* Find(std::string_view name);
  // The same; a missing one is a problem.
  const YamlNode* Need(std::string_view name);

  void Text(std::string_view name, std::string& value);
  void Flag(std::string_view name, bool& value);
  void Integer(std::string_view name, int64_t low, int64_t high, int64_t& value);
  void Integer(std::string_view name, int64_t low, int64_t high, std::optional<int64_t>& value);
  void Number(std::string_view name, double low, double high, double& value);
  void NumberRange(std::string_view name, double low, double high, SecondsRange& value);
  void Seconds(std::string_view name, int64_t& value);  // 30s, 5m, 2h; at least one second
  void TimeRange(std::string_view name, std::optional<SecondsRange>& value);  // 5m..10m
  // One of several words; returns its index.
  void Choice(std::string_view name, const std::vector<std::string>& words, size_t& value);
  // One text, or a list of texts.
  void Texts(std::string_view name, std::vector<Reference>& values);

 private:
  Problems& problems_;
  const YamlNode& node_;
  const std::string what_;
  std::set<std::string, std::less<>> asked_;
};

// "did you mean 'x'?", or the list of valid names, or nothing.
std::string SuggestName(const std::string& word, const std::vector<std::string>& candidates);

// The candidates in a map by name.
template <class Map>
std::vector<std::string> NamesIn(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

}  // namespace muster::plan
