#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster {

// A POSIX extended regular expression, which needs no more stack for a longer text. Thread-safe.
class Regex {
 public:
  // kInvalid says what is wrong with it.
  static Result<Regex> Compile(const std::string& expression);

  // Whether some part of the text matches.
  bool Matches(std::string_view text) const;

  // The first match and its groups, empty where a group took no part; none: nothing matches.
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
