#include "task/data/column_types.h"

#include <charconv>
#include <cstdint>

#include "core/json_scan.h"

namespace muster::task {

void ColumnTypes::Expect(const std::string& name) {
  if (by_name_.contains(name)) return;
  by_name_[name] = columns_.size();
  columns_.push_back({.name = name, .raw_key = name});
}

Status ColumnTypes::Note(std::string_view object) {
  JsonMembers members(object.substr(SkipJsonSpace(object, 0)));
  size_t next = 0;
  while (const auto member = members.Next()) {
    MUSTER_ASSIGN(const size_t column, Find(member->key, next));
    columns_[column].kind = Join(columns_[column].kind, KindOf(member->value));
    next = column + 1;
  }
  return {};
}

// Documents of one source mostly have the same fields in the same order: try the next one first.
Result<size_t> ColumnTypes::Find(std::string_view raw_key, size_t guess) {
  if (guess < columns_.size() && columns_[guess].raw_key == raw_key) return guess;
  std::string name = UnescapeJson(raw_key);
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return found->second;
  if (columns_.size() == kMaxColumns) {
    return Error{Code::kInvalid, "the documents have more than " + std::to_string(kMaxColumns) +
                                     " distinct fields"};
  }
  by_name_[name] = columns_.size();
  columns_.push_back({.name = std::move(name), .raw_key = std::string(raw_key)});
  return columns_.size() - 1;
}

ColumnTypes::Kind ColumnTypes::KindOf(std::string_view value) {
  if (value.empty() || value == "null") return Kind::kNone;
  if (value.front() == '"') return Kind::kText;
  if (value == "true" || value == "false") return Kind::kBoolean;
  if (value.front() == '{' || value.front() == '[') return Kind::kJson;
  if (value.find_first_of(".eE") != std::string_view::npos) return Kind::kReal;
  int64_t number = 0;
  const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), number);
  return failed == std::errc() && end == value.data() + value.size() ? Kind::kInteger : Kind::kJson;
}

ColumnTypes::Kind ColumnTypes::Join(Kind a, Kind b) {
  if (a == b || b == Kind::kNone) return a;
  if (a == Kind::kNone) return b;
  const bool numbers =
      (a == Kind::kInteger && b == Kind::kReal) || (a == Kind::kReal && b == Kind::kInteger);
  return numbers ? Kind::kReal : Kind::kJson;
}

std::vector<std::pair<std::string, std::string>> ColumnTypes::Columns() const {
  std::vector<std::pair<std::string, std::string>> columns;
  for (const Column& column : columns_) {
    const char* type = "VARCHAR";
    if (column.kind == Kind::kInteger) type = "BIGINT";
    if (column.kind == Kind::kReal) type = "DOUBLE";
    if (column.kind == Kind::kBoolean) type = "BOOLEAN";
    if (column.kind == Kind::kJson) type = "JSON";
    columns.emplace_back(column.name, type);
  }
  return columns;
}

}  // namespace muster::task
