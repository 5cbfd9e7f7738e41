#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster {

// A regular expression in RE2's syntax, which has no backreferences and no lookaround. Expressions
// and texts may come from anywhere: the time to match grows with the text's length and no faster,
// the stack does not grow at all, and an expression that takes more than 2 MiB is refused. Of
// matches that begin at the same place, the longest counts. Both are UTF-8; ^ and $ are the ends of
// the text. Thread-safe.
class Regex {
 public:
  static constexpr size_t kMaxGroups = 10;

  struct Options {
    bool ignore_case = false;
    bool dot_takes_newline = true;
  };

  // kInvalid says what is wrong with it.
  static Result<Regex> Compile(const std::string& expression) { return Compile(expression, {}); }
  static Result<Regex> Compile(const std::string& expression, const Options& options);

  // An expression that matches this text and no other.
  static std::string Escape(std::string_view text);

  // Whether some part of the text matches.
  bool Matches(std::string_view text) const;

  // Whether the text as a whole matches.
  bool MatchesWhole(std::string_view text) const;

  // The first match and its groups, kMaxGroups together at most, empty where a group took no part;
  // none: nothing matches.
  std::optional<std::vector<std::string_view>> Groups(std::string_view text) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

// Whether the text is what a person means by a pattern: /…/ is a regular expression, everything
// else stands for the whole text, with * for any characters and ? for one.
class Pattern {
 public:
  static Result<Pattern> Parse(const std::string& text);
  bool Matches(std::string_view text) const { return regex_.Matches(text); }

 private:
  explicit Pattern(Regex regex) : regex_(std::move(regex)) {}
  Regex regex_;
};

}  // namespace muster
