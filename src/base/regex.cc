#include "base/regex.h"

#include <regex.h>

namespace muster {

struct Regex::Compiled {
  regex_t regex{};
  ~Compiled() { regfree(&regex); }
};

Result<Regex> Regex::Compile(const std::string& expression) {
  const auto invalid = [&](std::string_view reason) {
    return Error{Code::kInvalid,
                 "'" + expression + "' is no regular expression: " + std::string(reason)};
  };
  if (expression.find('\0') != std::string::npos) return invalid("it holds a NUL");
  auto compiled = std::make_shared<Compiled>();
  if (const int failed = regcomp(&compiled->regex, expression.c_str(), REG_EXTENDED); failed != 0) {
    char reason[200];
    regerror(failed, &compiled->regex, reason, sizeof reason);
    compiled->regex = {};  // nothing to free
    return invalid(reason);
  }
  return Regex(std::move(compiled));
}

std::optional<std::vector<std::string_view>> Regex::Groups(std::string_view text) const {
  std::vector<regmatch_t> found(compiled_->regex.re_nsub + 1);
  found[0].rm_so = 0;
  found[0].rm_eo = static_cast<regoff_t>(text.size());
  if (regexec(&compiled_->regex, text.data() == nullptr ? "" : text.data(), found.size(),
              found.data(), REG_STARTEND) != 0) {
    return std::nullopt;
  }
  std::vector<std::string_view> groups;
  for (const regmatch_t& one : found) {
    groups.push_back(one.rm_so < 0 ? std::string_view()
                                   : text.substr(static_cast<size_t>(one.rm_so),
                                                 static_cast<size_t>(one.rm_eo - one.rm_so)));
  }
  return groups;
}

bool Regex::Matches(std::string_view text) const {
  regmatch_t whole{0, static_cast<regoff_t>(text.size())};
  return regexec(&compiled_->regex, text.data() == nullptr ? "" : text.data(), 1, &whole,
                 REG_STARTEND) == 0;
}

Result<Pattern> Pattern::Parse(const std::string& text) {
  if (text.size() >= 2 && text.front() == '/' && text.back() == '/') {
    MUSTER_ASSIGN(Regex regex, Regex::Compile(text.substr(1, text.size() - 2)));
    return Pattern(std::move(regex));
  }
  std::string expression = "^";
  for (const char c : text) {
    if (c == '*') {
      expression += ".*";
    } else if (c == '?') {
      expression += '.';
    } else {
      if (std::string_view("\\^$.[]|()+{}").find(c) != std::string_view::npos) expression += '\\';
      expression += c;
    }
  }
  MUSTER_ASSIGN(Regex regex, Regex::Compile(expression + "$"));
  return Pattern(std::move(regex));
}

}  // namespace muster
