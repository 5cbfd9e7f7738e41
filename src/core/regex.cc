#include "core/regex.h"

#include <re2/re2.h>

#include <algorithm>

#include "core/utf8.h"

namespace muster {
namespace {

// For the compiled program and for RE2's state cache. If the states do not fit, each step takes
// time proportional to the program: the limit keeps a 50 KB text within seconds.
constexpr int64_t kMaxBytes = int64_t{2} << 20;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct Regex::Compiled {
  Compiled(const std::string& expression, const RE2::Options& options)
      : regex(expression, options) {}
  RE2 regex;
};

Result<Regex> Regex::Compile(const std::string& expression, const Options& options) {
  RE2::Options settings;
  settings.set_max_mem(kMaxBytes);
  settings.set_log_errors(false);
  settings.set_longest_match(true);
  settings.set_case_sensitive(!options.ignore_case);
  settings.set_dot_nl(options.dot_takes_newline);
  auto compiled = std::make_shared<const Compiled>(expression, settings);
  if (!compiled->regex.ok()) {
    return Error{Code::kInvalid, "'" + Shortened(expression) + "' is not a regular expression: " +
                                     Shortened(compiled->regex.error())};
  }
  return Regex(std::move(compiled));
}

std::string Regex::Escape(std::string_view text) { return RE2::QuoteMeta(Piece(text)); }

bool Regex::Matches(std::string_view text) const {
  return compiled_->regex.Match(Piece(text), 0, text.size(), RE2::UNANCHORED, nullptr, 0);
}

bool Regex::MatchesWhole(std::string_view text) const {
  return compiled_->regex.Match(Piece(text), 0, text.size(), RE2::ANCHOR_BOTH, nullptr, 0);
}

std::optional<std::vector<std::string_view>> Regex::Groups(std::string_view text) const {
  // Each of RE2's threads keeps every requested group.
  const auto count =
      std::min(kMaxGroups, static_cast<size_t>(compiled_->regex.NumberOfCapturingGroups()) + 1);
  std::vector<re2::StringPiece> found(count);
  if (!compiled_->regex.Match(Piece(text), 0, text.size(), RE2::UNANCHORED, found.data(),
                              static_cast<int>(count))) {
    return std::nullopt;
  }
  std::vector<std::string_view> groups;
  for (const re2::StringPiece& one : found) groups.emplace_back(one.data(), one.size());
  return groups;
}

Result<Pattern> Pattern::Parse(const std::string& text) {
  if (text.size() >= 2 && text.front() == '/' && text.back() == '/') {
    MUSTER_ASSIGN(Regex regex, Regex::Compile(text.substr(1, text.size() - 2)));
    return Pattern(std::move(regex));
  }
  std::string expression = "^";
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t literal = std::min(rest.find_first_of("*?"), rest.size());
    expression += Regex::Escape(rest.substr(0, literal));
    rest.remove_prefix(literal);
    if (rest.empty()) break;
    // Names may contain bytes that are not UTF-8: \C is any byte.
    expression += rest.front() == '*' ? "\\C*" : ".";
    rest.remove_prefix(1);
  }
  MUSTER_ASSIGN(Regex regex, Regex::Compile(expression + "$"));
  return Pattern(std::move(regex));
}

}  // namespace muster
