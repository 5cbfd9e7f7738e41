#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster {

// A regular expression in RE2's syntax: no backreferences, no lookaround. Safe for untrusted
// expressions and texts: matching is linear in the text, the stack does not grow, and an expression
// that needs more than 2 MiB is rejected. Of matches that begin at the same position, the longest
// counts. Both are UTF-8; ^ and $ match only at the ends of the text. Thread-safe.
class Regex {
 public:
  static constexpr size_t kMaxGroups = 10;

  struct Options {
    bool ignore_case = false;
    bool dot_takes_newline = true;
  };

  // kInvalid says what is wrong.
  static Result<Regex> Compile(const std::string& expression) { return Compile(expression, {}); }
  static Result<Regex> Compile(const std::string& expression, const Options& options);

  // An expression that matches exactly this text.
  static std::string Escape(std::string_view text);

  // Whether any part of the text matches.
  bool Matches(std::string_view text) const;

  // Whether the whole text matches.
  bool MatchesWhole(std::string_view text) const;

  // The first match and its groups, at most kMaxGroups in total, empty for unused groups; none: no
  // match.
  std::optional<std::vector<std::string_view>> Groups(std::string_view text) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

// A user's pattern: /…/ is a regular expression, anything else a glob for the whole text, with *
// and ?.
class Pattern {
 public:
  static Result<Pattern> Parse(const std::string& text);
  bool Matches(std::string_view text) const { return regex_.Matches(text); }

 private:
  explicit Pattern(Regex regex) : regex_(std::move(regex)) {}
  Regex regex_;
};

}  // namespace muster
