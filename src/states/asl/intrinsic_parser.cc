#include <algorithm>
#include <array>
#include <cctype>

#include "states/asl/intrinsic.h"
#include "states/asl/query.h"

namespace muster::states {
namespace {

constexpr int kMaxDepth = 10;

struct Signature {
  std::string_view name;
  size_t least;
  size_t most;
};

constexpr std::array<Signature, 18> kFunctions = {{{"Format", 1, 1000},
                                                   {"StringToJson", 1, 1},
                                                   {"JsonToString", 1, 1},
                                                   {"Array", 0, 1000},
                                                   {"ArrayPartition", 2, 2},
                                                   {"ArrayContains", 2, 2},
                                                   {"ArrayRange", 3, 3},
                                                   {"ArrayGetItem", 2, 2},
                                                   {"ArrayLength", 1, 1},
                                                   {"ArrayUnique", 1, 1},
                                                   {"Base64Encode", 1, 1},
                                                   {"Base64Decode", 1, 1},
                                                   {"Hash", 2, 2},
                                                   {"JsonMerge", 3, 3},
                                                   {"MathRandom", 2, 3},
                                                   {"MathAdd", 2, 2},
                                                   {"StringSplit", 2, 2},
                                                   {"UUID", 0, 0}}};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::shared_ptr<const Intrinsic>> Whole() {
    MUSTER_ASSIGN(auto call, Call(1));
    SkipSpaces();
    if (at_ != text_.size()) return Wrong("unexpected text after the call");
    return call;
  }

 private:
  Result<std::shared_ptr<const Intrinsic>> Call(int depth) {
    if (depth > kMaxDepth) return Wrong("more than 10 functions inside each other");
    const size_t start = at_;
    if (!text_.substr(at_).starts_with("States.")) return Wrong("expected a function 'States.…'");
    at_ += 7;
    const size_t name_start = at_;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) ++at_;
    auto call = std::make_shared<Intrinsic>();
    call->name = std::string(text_.substr(name_start, at_ - name_start));
    const auto* signature = std::find_if(kFunctions.begin(), kFunctions.end(),
                                         [&](const Signature& s) { return s.name == call->name; });
    if (signature == kFunctions.end()) return Wrong("unknown function 'States." + call->name + "'");
    SkipSpaces();
    if (!Take('(')) return Wrong("expected '('");
    SkipSpaces();
    while (!Take(')')) {
      if (!call->arguments.empty()) {
        if (!Take(',')) return Wrong("expected ',' or ')'");
        SkipSpaces();
      }
      MUSTER_ASSIGN(Intrinsic::Argument argument, Argument(depth));
      call->arguments.push_back(std::move(argument));
      SkipSpaces();
    }
    call->text = std::string(text_.substr(start, at_ - start));
    const size_t count = call->arguments.size();
    if (count < signature->least || count > signature->most) {
      return Wrong("States." + call->name + " does not take " + std::to_string(count) +
                   " arguments");
    }
    const bool numeric =
        call->name == "MathAdd" || call->name == "MathRandom" || call->name == "ArrayRange";
    for (const Intrinsic::Argument& argument : call->arguments) {
      const Json* literal = std::get_if<Json>(&argument);
      if (numeric && literal != nullptr && !literal->is_number()) {
        return Wrong("States." + call->name + " takes numbers and paths only");
      }
    }
    return std::shared_ptr<const Intrinsic>(std::move(call));
  }

  Result<Intrinsic::Argument> Argument(int depth) {
    if (at_ >= text_.size()) return Wrong("expected an argument");
    if (text_[at_] == '\'') return Quoted();
    if (text_[at_] == '$') return Path();
    if (text_.substr(at_).starts_with("States.")) {
      MUSTER_ASSIGN(auto nested, Call(depth + 1));
      return Intrinsic::Argument(std::move(nested));
    }
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')' && text_[at_] != ' ') ++at_;
    Json literal = Json::parse(text_.substr(start, at_ - start), nullptr, false);
    if (literal.is_discarded() || literal.is_structured() || literal.is_string()) {
      at_ = start;
      return Wrong("expected a path, a number, a quoted text, true, false, null or a function");
    }
    return Intrinsic::Argument(std::move(literal));
  }

  // Escaped braces stay escaped: only Format interprets them.
  Result<Intrinsic::Argument> Quoted() {
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != '\''; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        const char next = text_[at_ + 1];
        if (next == '\'' || next == '\\') {
          value += next;
          ++at_;
          continue;
        }
      }
      value += text_[at_];
    }
    if (!Take('\'')) return Wrong("a quote is not closed");
    return Intrinsic::Argument(Json(std::move(value)));
  }

  Result<Intrinsic::Argument> Path() {
    const size_t start = at_;
    int brackets = 0;
    char quote = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote != 0) {
        if (c == '\\')
          ++at_;
        else if (c == quote)
          quote = 0;
        continue;
      }
      if (brackets > 0 && (c == '\'' || c == '"')) quote = c;
      if (c == '[') ++brackets;
      if (c == ']') --brackets;
      if (brackets == 0 && (c == ',' || c == ')' || c == ' ')) break;
    }
    MUSTER_ASSIGN(Query query, Query::ParsePath(text_.substr(start, at_ - start)));
    return Intrinsic::Argument(std::make_shared<const Query>(std::move(query)));
  }

  void SkipSpaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Error Wrong(std::string_view what) const {
    return {Code::kInvalid, "bad intrinsic function '" + std::string(text_) + "': " +
                                std::string(what) + ", at character " + std::to_string(at_ + 1)};
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<std::shared_ptr<const Intrinsic>> Intrinsic::Parse(std::string_view text) {
  return Parser(text).Whole();
}

}  // namespace muster::states
