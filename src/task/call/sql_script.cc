#include "task/call/sql_script.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace muster::task {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// A cursor over a script; each Skip… moves from the start of a token to its end.
class SqlScanner {
 public:
  explicit SqlScanner(std::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ >= text_.size(); }
  size_t at() const { return at_; }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void SkipSpaceAndComments() {
    while (!AtEnd() && (std::isspace(static_cast<unsigned char>(Peek())) != 0 || IsComment())) {
      SkipOne();
    }
  }

  // The next token, or part of one, that may hold a semicolon.
  void SkipOne() {
    const char c = Peek();
    if (c == '-' && Peek(1) == '-') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '/' && Peek(1) == '*') {
      SkipBlockComment();
    } else if (c == '\'') {
      const bool escapes = at_ > 0 && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') &&
                           (at_ < 2 || !IsWord(text_[at_ - 2]));
      SkipQuoted('\'', escapes);
    } else if (c == '"') {
      SkipQuoted('"', false);
    } else if (c == '$' && (at_ == 0 || !IsWord(text_[at_ - 1]))) {
      SkipDollar();
    } else {
      ++at_;
    }
  }

 private:
  bool IsComment() const {
    return (Peek() == '-' && Peek(1) == '-') || (Peek() == '/' && Peek(1) == '*');
  }

  void SkipBlockComment() {
    int depth = 0;
    do {
      if (Peek() == '/' && Peek(1) == '*') {
        ++depth;
        at_ += 2;
      } else if (Peek() == '*' && Peek(1) == '/') {
        --depth;
        at_ += 2;
      } else {
        ++at_;
      }
    } while (depth > 0 && !AtEnd());
    at_ = std::min(at_, text_.size());
  }

  // A doubled quote is read as the end of one quoted part and the start of the next.
  void SkipQuoted(char quote, bool escapes) {
    for (++at_; !AtEnd(); ++at_) {
      if (escapes && Peek() == '\\') {
        ++at_;
      } else if (Peek() == quote) {
        ++at_;
        return;
      }
    }
    at_ = std::min(at_, text_.size());
  }

  void SkipDollar() {
    size_t end = at_ + 1;
    while (end < text_.size() && IsWord(text_[end])) ++end;
    if (end >= text_.size() || text_[end] != '$') {
      ++at_;  // a parameter, such as $1
      return;
    }
    const std::string_view tag = text_.substr(at_, end + 1 - at_);
    const size_t close = text_.find(tag, end + 1);
    at_ = close == std::string_view::npos ? text_.size() : close + tag.size();
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<SqlStatement> SplitSqlScript(std::string_view script) {
  std::vector<SqlStatement> statements;
  SqlScanner scanner(script);
  while (true) {
    scanner.SkipSpaceAndComments();
    if (scanner.AtEnd()) return statements;
    const size_t begin = scanner.at();
    while (!scanner.AtEnd() && scanner.Peek() != ';') scanner.SkipOne();
    const std::string_view text = script.substr(begin, scanner.at() - begin);
    if (!text.empty()) {
      const auto before = script.substr(0, begin);
      statements.push_back(
          {.text = std::string(text),
           .line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'))});
    }
    if (!scanner.AtEnd()) scanner.SkipOne();
  }
}

Error ScriptError(const Error& error, const std::string& file, const SqlStatement& statement,
                  size_t number) {
  std::string message = error.message;
  size_t line = statement.line;
  // DuckDB shows the line under its message, counted from the statement's first.
  constexpr std::string_view kMark = "\nLINE ";
  if (const size_t mark = message.find(kMark); mark != std::string::npos) {
    size_t within = 1;
    const char* digits = message.data() + mark + kMark.size();
    std::from_chars(digits, message.data() + message.size(), within);
    line += within - std::min<size_t>(within, 1);
    message.erase(mark);
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  message.erase(message.find_last_not_of(' ') + 1);
  return Error{
      error.code,
      file + ":" + std::to_string(line) + ": statement " + std::to_string(number) + ": " + message,
      error.hint};
}

}  // namespace muster::task
