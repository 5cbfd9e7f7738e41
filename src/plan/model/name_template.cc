#include "plan/model/name_template.h"

#include <algorithm>

namespace muster::plan {
namespace {

bool IsPlaceholder(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

// Calls `literal` with each text between placeholders, and `placeholder` with each of them.
template <class Literal, class Placeholder>
void Split(std::string_view text, Literal literal, Placeholder placeholder) {
  while (!text.empty()) {
    const size_t open = text.find('{');
    const size_t close = open == text.npos ? open : text.find('}', open);
    if (close == text.npos) return literal(text);
    const std::string_view name = text.substr(open + 1, close - open - 1);
    const bool is_reference = open > 0 && text[open - 1] == '$';
    if (is_reference || !IsPlaceholder(name)) {
      literal(text.substr(0, open + 1));
      text.remove_prefix(open + 1);
      continue;
    }
    if (open > 0) literal(text.substr(0, open));
    placeholder(std::string(name));
    text.remove_prefix(close + 1);
  }
}

// The value of a name before a run begins; none: only the run has it.
std::optional<std::string> KnownNow(const Plan& plan, const std::string& name) {
  if (const auto found = plan.variables.find(name); found != plan.variables.end())
    return found->second;
  if (name == kPlanFolder) return plan.folder;
  return std::nullopt;
}

}  // namespace

std::vector<std::string> PlaceholdersOf(std::string_view text) {
  std::vector<std::string> names;
  Split(
      text, [](std::string_view) {}, [&](std::string name) { names.push_back(std::move(name)); });
  return names;
}

std::vector<std::string> LiteralsOf(std::string_view text) {
  std::vector<std::string> literals(1);
  Split(
      text, [&](std::string_view part) { literals.back() += part; },
      [&](const std::string&) { literals.emplace_back(); });
  return literals;
}

void Names::Put(Json& parameters, const std::string& key, std::string_view text,
                const std::map<std::string, std::string>& own) const {
  std::string plain;
  std::string format;
  std::string inputs;
  const auto add = [&](std::string_view part) {
    plain += part;
    // Characters with a meaning in States.Format.
    for (const char c : part) {
      if (c == '\'' || c == '{' || c == '}' || c == '\\') format += '\\';
      format += c;
    }
  };
  Split(text, add, [&](const std::string& name) {
    if (const auto found = own.find(name); found != own.end()) return add(found->second);
    if (const auto known = KnownNow(plan_, name)) return add(*known);
    format += "{}";
    inputs += ", $." + name;
  });
  if (inputs.empty()) {
    parameters[key] = plain;
  } else if (format == "{}") {
    parameters[key + ".$"] = inputs.substr(2);
  } else {
    parameters[key + ".$"] = "States.Format('" + format + "'" + inputs + ")";
  }
}

Result<std::string> Names::Fixed(std::string_view text) const {
  std::string fixed;
  std::string missing;
  Split(
      text, [&](std::string_view part) { fixed += part; },
      [&](const std::string& name) {
        if (const auto known = KnownNow(plan_, name)) {
          fixed += *known;
          return;
        }
        const auto input = plan_.inputs.find(name);
        if (input != plan_.inputs.end() && input->second) {
          fixed += *input->second;
        } else {
          missing = name;
        }
      });
  if (missing.empty()) return fixed;
  return Error{Code::kInvalid,
               "'" + std::string(text) + "' has to be known now, and {" + missing + "} is not",
               "--set " + missing + "=VALUE gives it"};
}

Names::Filled Names::Fill(std::string_view text,
                          const std::map<std::string, std::string>& inputs) const {
  Filled filled{.text = {}, .pieces = {""}};
  const auto add = [&](std::string_view part) {
    filled.text += part;
    filled.pieces.back() += part;
  };
  Split(text, add, [&](const std::string& name) {
    if (const auto known = KnownNow(plan_, name)) return add(*known);
    const auto given = inputs.find(name);
    const auto input = plan_.inputs.find(name);
    if (given != inputs.end()) {
      filled.text += given->second;
    } else if (input != plan_.inputs.end()) {
      filled.text += input->second.value_or("");
    }
    filled.pieces.emplace_back();
  });
  return filled;
}

std::string Names::Pattern(std::string_view text,
                           const std::map<std::string, std::string>& own) const {
  std::string pattern;
  Split(
      text, [&](std::string_view part) { pattern += part; },
      [&](const std::string& name) {
        if (const auto found = own.find(name); found != own.end()) {
          pattern += found->second;
        } else if (const auto known = KnownNow(plan_, name)) {
          pattern += *known;
        } else {
          pattern += '*';
        }
      });
  return pattern;
}

}  // namespace muster::plan
